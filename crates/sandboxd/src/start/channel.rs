//! The sequenced-packet socket between PID 1 and the starter.

use super::launch::{self, Launch, Outcome};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use tokio::io::unix::AsyncFd;

/// The most descriptors one request carries: three streams, a script, a payload.
pub(super) const MAX_DESCRIPTORS: usize = 5;
/// Requests up to this size travel in the datagram, larger ones in a memory file.
const INLINE_LIMIT: usize = 64 * 1024;

const INLINE: u8 = 0;
const IN_FILE: u8 = 1;
const PROBE: u8 = 2;

/// One end of the channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// One received request.
#[derive(Debug)]
pub(super) struct Received {
    /// The request, if it could be read.
    pub(super) launch: Option<Launch>,
    /// The number to answer, 0 for what could not be read.
    pub(super) call: u64,
    /// The descriptors that came along.
    pub(super) descriptors: Vec<OwnedFd>,
}

impl Channel {
    pub(super) fn pair() -> Result<(Self, Self), Errno> {
        let (a, b) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(a), Self(b)))
    }

    /// The channel as the async runtime waits on it.
    ///
    /// # Errors
    /// The descriptor cannot be watched.
    pub fn watched(self) -> std::io::Result<AsyncFd<Self>> {
        // SAFETY: the channel owns its descriptor for as long as it lives and never exchanges it.
        unsafe { AsyncFd::register(self) }.map_err(Into::into)
    }

    /// Makes a request ready to send, apart from its stream descriptors.
    ///
    /// # Errors
    /// The memory file for a large request could not be made.
    pub fn prepare(launch: &Launch) -> Result<(Vec<u8>, Option<OwnedFd>), Errno> {
        let body = launch.encode();
        if body.len() <= INLINE_LIMIT {
            let mut datagram = Vec::with_capacity(body.len() + 1);
            datagram.push(INLINE);
            datagram.extend_from_slice(&body);
            return Ok((datagram, None));
        }
        let file = memory_file(c"launch", &body)?;
        Ok((vec![IN_FILE], Some(file)))
    }

    /// A request that starts nothing: its answer says that all sent before it were read.
    #[must_use]
    pub fn probe(call: u64) -> Vec<u8> {
        [&[PROBE][..], &call.to_le_bytes()].concat()
    }

    /// Sends one prepared request without waiting; `WOULDBLOCK` when there is no room.
    ///
    /// # Errors
    /// As `sendmsg`.
    pub fn try_send(&self, datagram: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(Errno::INVAL);
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.0, &[IoSlice::new(datagram)], &mut ancillary, flags).map(drop)
    }

    /// Receives one reply without waiting; `None` once the starter is gone.
    ///
    /// # Errors
    /// As `recvmsg`; `PROTO` for a datagram that is no reply.
    pub fn try_receive_reply(&self) -> Result<Option<(u64, Outcome)>, Errno> {
        let mut bytes = [0; 64];
        let (n, _) = rustix::net::recv(&self.0, &mut bytes, RecvFlags::DONTWAIT)?;
        if n == 0 {
            return Ok(None);
        }
        launch::decode_reply(&bytes[..n])
            .map(Some)
            .ok_or(Errno::PROTO)
    }

    pub(super) fn reply(&self, call: u64, outcome: Outcome) -> Result<(), Errno> {
        let bytes = launch::encode_reply(call, outcome);
        rustix::io::retry_on_intr(|| rustix::net::send(&self.0, &bytes, SendFlags::NOSIGNAL))
            .map(drop)
    }

    /// Takes one unread request away; whether there was one. Its descriptors are closed.
    pub(super) fn discard_request(&self) -> bool {
        let mut byte = [0; 1];
        let flags = RecvFlags::DONTWAIT;
        matches!(rustix::net::recv(&self.0, &mut byte, flags), Ok((n, _)) if n > 0)
    }

    /// Waits for a request. `None` once PID 1 is gone.
    pub(super) fn receive(&self) -> Result<Option<Received>, Errno> {
        let mut buffer = vec![0; INLINE_LIMIT + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let message = rustix::io::retry_on_intr(|| {
            recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut buffer)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        if message.bytes == 0 {
            return Ok(None);
        }
        let mut descriptors: Vec<OwnedFd> = Vec::with_capacity(MAX_DESCRIPTORS);
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                descriptors.extend(received);
            }
        }
        if message.flags.contains(ReturnFlags::TRUNC) || message.flags.contains(ReturnFlags::CTRUNC)
        {
            return Ok(Some(Received {
                launch: None,
                call: 0,
                descriptors,
            }));
        }
        buffer.truncate(message.bytes);
        if let Some((&PROBE, call)) = buffer.split_first() {
            let call = call.try_into().map_or(0, u64::from_le_bytes);
            return Ok(Some(Received {
                launch: None,
                call,
                descriptors,
            }));
        }
        let launch = match buffer.split_first() {
            Some((&INLINE, body)) => Launch::decode(body),
            Some((&IN_FILE, [])) => match descriptors.pop() {
                Some(file) => Launch::decode(&read_whole(file.as_fd())?),
                None => None,
            },
            _ => None,
        };
        Ok(Some(Received {
            call: launch.as_ref().map_or(0, |launch| launch.call),
            launch,
            descriptors,
        }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl std::os::fd::AsRawFd for Channel {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

/// Makes an anonymous file that holds `content`, its offset at the start.
///
/// # Errors
/// No memory or no descriptor is left.
pub fn memory_file(name: &std::ffi::CStr, content: &[u8]) -> Result<OwnedFd, Errno> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    let mut written = 0;
    while written < content.len() {
        let offset = u64::try_from(written).map_err(|_| Errno::FBIG)?;
        written +=
            rustix::io::retry_on_intr(|| rustix::io::pwrite(&file, &content[written..], offset))?;
    }
    Ok(file)
}

fn read_whole(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let size = usize::try_from(rustix::fs::fstat(file)?.st_size).map_err(|_| Errno::FBIG)?;
    let mut content = vec![0; size];
    let mut read = 0;
    while read < size {
        let offset = u64::try_from(read).map_err(|_| Errno::FBIG)?;
        match rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut content[read..], offset))? {
            0 => break,
            n => read += n,
        }
    }
    content.truncate(read);
    Ok(content)
}
