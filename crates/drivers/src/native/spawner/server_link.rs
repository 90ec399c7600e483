//! The connections of servers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with};

use crate::native::data_dir::DataDir;
use crate::native::packet;
use crate::native::protocol::{Answer, Greeting, Refusal, Reply, Request, VERSION};
use crate::native::socket_path;

/// How many connections may wait for their first packet.
const NEWCOMERS_MAX: usize = 8;

/// The listening socket with the connections that it gave.
pub struct ServerLink {
    listener: OwnedFd,
    /// The server that is obeyed.
    server: Option<OwnedFd>,
    /// Connections that did not say hello yet.
    newcomers: Vec<OwnedFd>,
}

/// A connection that said hello.
pub struct Newcomer {
    /// The connection.
    pub peer: OwnedFd,
    /// What it said.
    pub greeting: Greeting,
    /// Its own program.
    pub program: Option<OwnedFd>,
}

/// What is told once the spawner listens.
pub const SOCKET: &str = "spawner.sock";

impl ServerLink {
    /// Listens in the data directory.
    pub fn listen(data: &DataDir) -> io::Result<Self> {
        let run = data.run();
        match std::fs::remove_file(run.join(SOCKET)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let (_dir, address) = socket_path::address(&run, SOCKET)?;
        let listener = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        bind(&listener, &address)?;
        listen(&listener, 16)?;
        Ok(Self {
            listener,
            server: None,
            newcomers: Vec::new(),
        })
    }

    /// Goes on with a socket that listens, and perhaps a server.
    pub fn resume(listener: OwnedFd, server: Option<OwnedFd>) -> Self {
        Self {
            listener,
            server,
            newcomers: Vec::new(),
        }
    }

    /// The listening socket.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The server that is obeyed.
    pub fn server(&self) -> Option<BorrowedFd<'_>> {
        self.server.as_ref().map(AsFd::as_fd)
    }

    /// Everything to wait on: the listener, the server, the newcomers.
    pub fn sources(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = vec![self.listener.as_fd()];
        all.extend(self.server.iter().map(AsFd::as_fd));
        all.extend(self.newcomers.iter().map(AsFd::as_fd));
        all
    }

    /// Whether a server is connected.
    pub fn is_connected(&self) -> bool {
        self.server.is_some()
    }

    /// Takes new connections of this process's own user.
    pub fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(peer) = accept_with(&self.listener, flags) {
            let own = rustix::process::geteuid();
            let is_own = rustix::net::sockopt::socket_peercred(&peer)
                .is_ok_and(|credentials| credentials.uid == own);
            if is_own && self.newcomers.len() < NEWCOMERS_MAX {
                self.newcomers.push(peer);
            }
        }
    }

    /// The next request of the obeyed server, if one is there.
    pub fn next(&mut self) -> Option<Request> {
        let server = self.server.as_ref()?;
        match receive(server) {
            Received::Request(request) => Some(request),
            Received::Nothing => None,
            Received::End => {
                self.server = None;
                None
            }
        }
    }

    /// Connections whose first packet is there.
    pub fn greetings(&mut self) -> Vec<Newcomer> {
        let mut greeted = Vec::new();
        let mut waiting = Vec::new();
        for peer in self.newcomers.drain(..) {
            match packet::receive::<Greeting>(&peer) {
                Ok(Some((greeting, fds))) => greeted.push(Newcomer {
                    peer,
                    greeting,
                    program: fds.into_iter().next(),
                }),
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => waiting.push(peer),
                // The end, a failure or something that is no greeting.
                _ => {}
            }
        }
        self.newcomers = waiting;
        greeted
    }

    /// Obeys `server` from now on; the one before is dropped.
    pub fn obey(&mut self, server: OwnedFd) {
        self.server = Some(server);
    }

    /// Sends to the obeyed server. One that does not read is dropped.
    pub fn send(&mut self, id: u64, body: Answer, fds: &[BorrowedFd<'_>]) {
        let Some(server) = &self.server else { return };
        if send_to(server, id, body, fds).is_err() {
            self.server = None;
        }
    }
}

/// Sends one reply.
pub fn send_to(peer: &OwnedFd, id: u64, body: Answer, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let reply = Reply {
        v: VERSION,
        id,
        body,
    };
    packet::send(peer, &reply, fds)
}

enum Received {
    Request(Request),
    Nothing,
    End,
}

fn receive(peer: &OwnedFd) -> Received {
    match packet::receive::<Request>(peer) {
        Ok(Some((request, _))) if request.v == VERSION => Received::Request(request),
        Ok(Some((request, _))) => {
            let message = format!("the spawner speaks version {VERSION} of its protocol");
            let reason = Refusal::Version;
            let _ = send_to(peer, request.id, Answer::Failed { reason, message }, &[]);
            Received::End
        }
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
        // The end, a failure or something that is not our protocol.
        _ => Received::End,
    }
}
