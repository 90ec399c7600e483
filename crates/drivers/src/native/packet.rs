//! Packets with descriptors over a unix seqpacket socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Serialize, de::DeserializeOwned};

use super::protocol::{PACKET_MAX, PAGE};

/// Room for the descriptors of one packet.
const FDS_MAX: usize = PAGE;

/// Sends one document with descriptors. Never blocks on a non-blocking socket.
pub fn send<T: Serialize>(to: impl AsFd, what: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(what)?;
    if text.len() > PACKET_MAX || fds.len() > FDS_MAX {
        return Err(io::Error::other(
            "a packet is larger than the protocol allows",
        ));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors for one packet"));
    }
    rustix::io::retry_on_intr(|| {
        sendmsg(
            to.as_fd(),
            &[IoSlice::new(&text)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
    })?;
    Ok(())
}

/// Receives one document with its descriptors, or nothing at the end.
pub fn receive<T: DeserializeOwned>(from: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut text = vec![0; PACKET_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        recvmsg(
            from.as_fd(),
            &mut [IoSliceMut::new(&mut text)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    if got
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(io::Error::other(
            "a packet is larger than the protocol allows",
        ));
    }
    let what = text.get(..got.bytes).unwrap_or_default();
    Ok(Some((serde_json::from_slice(what)?, fds)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap()
    }

    #[test]
    fn documents_and_descriptors_arrive_together() {
        let (a, b) = pair();
        send(&a, &"hello", &[a.as_fd(), b.as_fd()]).unwrap();
        let (text, fds) = receive::<String>(&b).unwrap().unwrap();
        assert_eq!((text.as_str(), fds.len()), ("hello", 2));
        drop((a, fds));
        assert!(receive::<String>(&b).unwrap().is_none());
    }

    #[test]
    fn a_packet_over_the_limit_is_not_sent() {
        let (a, _b) = pair();
        assert!(send(&a, &"x".repeat(PACKET_MAX), &[]).is_err());
    }
}
