//! Preparing boots before they are asked for.

use std::io;
use std::time::{Duration, Instant};

use hutch_images::HostImage;

use super::{PARKED_MAX, Service, log};
use crate::native::protocol::Refusal;
use crate::native::spawner::slot::{Slot, Stage};

/// How long after one preparation the next begins, if nobody waits for it.
const PACE: Duration = Duration::from_millis(20);
/// How long after a failed preparation the next is tried.
const BACKOFF: Duration = Duration::from_secs(1);
/// How long the image is taken to be as it was when last looked at.
const IMAGE_FRESH: Duration = Duration::from_secs(1);

impl Service {
    /// How many more boots should be prepared.
    pub(super) fn wanted(&self) -> usize {
        let queued = self.queue.len().min(PARKED_MAX);
        let most = match queued {
            0 => self.ahead.wanted(Instant::now()),
            queued => queued,
        };
        most.saturating_sub(self.prepared().count())
    }

    fn prepared(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.slots.values();
        slots.filter(|slot| matches!(slot.stage, Stage::Preparing | Stage::Parked))
    }

    pub(super) fn prepare_ahead(&mut self) {
        let urgent = !self.queue.is_empty();
        let now = Instant::now();
        while self.wanted() > 0 && (urgent || now >= self.prepare_after) {
            if self.is_after_failure(now) {
                return;
            }
            self.next_slot += 1;
            let name = format!("{:x}-{}", std::process::id(), self.next_slot);
            let made = self
                .image(now)
                .and_then(|image| Slot::prepare(&self.setup, &image, name, &self.boots));
            match made {
                Ok(slot) => {
                    self.slots.insert(self.next_slot, slot);
                    if !urgent {
                        self.prepare_after = now + PACE;
                    }
                }
                Err(cause) => self.preparation_failed(&cause.to_string()),
            }
        }
    }

    /// Whether the last preparation failed a moment ago.
    pub(super) fn is_after_failure(&self, now: Instant) -> bool {
        self.prepare_after > now + self.ahead.rest(now)
    }

    /// The image for a boot that is prepared now. The host's packages may have
    /// changed since the last one: what is new and private must be masked.
    fn image(&mut self, now: Instant) -> io::Result<HostImage> {
        if let Some((image, looked)) = &self.image
            && now < *looked + IMAGE_FRESH
        {
            return Ok(image.clone());
        }
        let image = HostImage::prepare(&self.setup.images).map_err(io::Error::other)?;
        self.image = Some((image.clone(), now));
        Ok(image)
    }

    /// Gives up what was prepared for a rush that is over.
    pub(super) fn drop_surplus(&mut self) {
        let wanted = self.ahead.wanted(Instant::now());
        let surplus = self.prepared().count().saturating_sub(wanted);
        let parked = self.slots.values_mut();
        let parked = parked.filter(|slot| matches!(slot.stage, Stage::Parked));
        for slot in parked.take(surplus) {
            let _ = slot.kill();
            slot.stage = Stage::Ended;
        }
    }

    /// Tells those who wait, and tries again later.
    pub(super) fn preparation_failed(&mut self, why: &str) {
        log(why);
        self.prepare_after = Instant::now() + BACKOFF;
        for (id, _) in std::mem::take(&mut self.queue) {
            self.refuse(id, Refusal::Step, why.to_owned());
        }
    }
}
