//! Following a sandbox's projection. It asks no actor, wakes nothing and is no
//! activity.

use std::sync::Arc;
use std::time::Duration;

use hutch_protocol::{ApiError, ErrorCode, LiveMessage, Patch};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::actor::View;

/// Changes within this time are told as one.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// One follower. It holds the state it was last told and nothing more: what a
/// slow one misses is in its next patch.
pub struct LiveState {
    view: watch::Receiver<View>,
    told: Option<(u64, Value)>,
    _seat: OwnedSemaphorePermit,
}

impl LiveState {
    pub(crate) fn new(
        view: watch::Receiver<View>,
        seats: &Arc<Semaphore>,
    ) -> Result<Self, ApiError> {
        let seat = Arc::clone(seats).try_acquire_owned().map_err(|_| {
            let path = view.borrow().record.key.path.clone();
            let message = format!("too many follow the state of sandbox {path}; unsubscribe some");
            ApiError::new(ErrorCode::CapacityExceeded, message)
        })?;
        Ok(Self {
            view,
            told: None,
            _seat: seat,
        })
    }

    /// The next message: at first the snapshot, then each change. None once
    /// the server stops.
    pub async fn next(&mut self) -> Option<LiveMessage> {
        loop {
            let Some((from, before)) = &self.told else {
                let (revision, state) = read(&mut self.view);
                self.told = Some((revision, state.clone()));
                return Some(LiveMessage::Snapshot { revision, state });
            };
            self.view.changed().await.ok()?;
            tokio::time::sleep(DEBOUNCE).await;
            let (to, state) = read(&mut self.view);
            let Some(patch) = Patch::between(before, &state) else {
                continue;
            };
            let from = *from;
            self.told = Some((to, state));
            return Some(LiveMessage::Patch { from, to, patch });
        }
    }
}

/// The revision is the offset of the last event that the state includes.
fn read(view: &mut watch::Receiver<View>) -> (u64, Value) {
    let view = view.borrow_and_update();
    let state = serde_json::to_value(&view.record.projection).unwrap_or_default();
    (view.record.offset, state)
}
