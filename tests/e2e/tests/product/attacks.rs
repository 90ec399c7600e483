//! Clients that want the server's time or memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hutch_e2e::{Handle, Hutch, resident_kib, wait_until};
use serde_json::json;

fn connect(hutch: &Hutch) -> TcpStream {
    TcpStream::connect(hutch.url().trim_start_matches("http://")).unwrap()
}

fn upgrade(hutch: &Hutch) -> String {
    let host = hutch.url().trim_start_matches("http://");
    format!(
        "GET /api HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// The server hangs up on each, and not only when we do.
fn all_end(sockets: Vec<TcpStream>) {
    for mut socket in sockets {
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut rest = [0; 4096];
        loop {
            match socket.read(&mut rest) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("a stranger was kept: {error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_strangers_take_no_room() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.exec("true").await;
    let before = resident_kib(hutch.pid());
    let mut strangers = Vec::new();
    for _ in 0..1000 {
        let mut socket = connect(&hutch);
        // Those that are refused are closed at once, so this may fail.
        let _ = socket.write_all(upgrade(&hutch).as_bytes());
        strangers.push(socket);
    }
    // Who was in goes on, and who has a key still comes in at once.
    assert_eq!(sandbox.sh("echo in").await.1, "in\n");
    for _ in 0..3 {
        let other = hutch.api().await;
        assert_eq!(other.sandbox("main").sh("echo on").await.1, "on\n");
    }
    let grown = resident_kib(hutch.pid()).saturating_sub(before);
    assert!(grown < 64 * 1024, "the server grew by {grown} KiB");
    tokio::task::spawn_blocking(move || all_end(strangers))
        .await
        .unwrap();
    let late = hutch.api().await;
    assert_eq!(
        Handle(late.session.clone()).json("whoami", &[]).await["type"],
        "admin"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_mute_strangers_are_hung_up_on() {
    let hutch = Hutch::start();
    let mut sockets = Vec::new();
    // Nothing at all, half a request, one that never authenticates, one that
    // begins a frame, other protocols, a flood of headers.
    sockets.push(connect(&hutch));
    for bytes in [
        b"GET /api HT".to_vec(),
        upgrade(&hutch).into_bytes(),
        [upgrade(&hutch).as_bytes(), &[0x81, 0xfe, 0x10]].concat(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        [
            b"GET /api HTTP/1.1\r\n".to_vec(),
            b"X-Y: zzzzzzzzzzzzzzzz\r\n".repeat(20_000),
        ]
        .concat(),
    ] {
        let mut socket = connect(&hutch);
        let _ = socket.write_all(&bytes);
        sockets.push(socket);
    }
    let drip = connect(&hutch);
    let mut dripping = drip.try_clone().unwrap();
    sockets.push(drip);
    let dripper = std::thread::spawn(move || {
        // A byte now and then, which keeps no deadline from passing.
        for byte in b"GET /api HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
            .iter()
            .cycle()
        {
            if dripping.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    tokio::task::spawn_blocking(move || all_end(sockets))
        .await
        .unwrap();
    dripper.join().unwrap();
    assert_eq!(
        hutch
            .api()
            .await
            .create("main", json!({}))
            .await
            .sh("echo ok")
            .await
            .1,
        "ok\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_descriptors_serves_those_it_has_and_recovers() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.exec("true").await;
    let pid = Pid::from_raw(i32::try_from(hutch.pid()).unwrap());
    let usual = getrlimit(Resource::Nofile);
    let open = hutch_e2e::open_files(hutch.pid()).len() as u64;
    let tight = Rlimit {
        current: Some(open + 4),
        maximum: usual.maximum,
    };
    prlimit(pid, Resource::Nofile, tight).unwrap();
    let mut strangers = Vec::new();
    for _ in 0..64 {
        strangers.push(connect(&hutch));
    }
    wait_until("the descriptors are used up", || {
        hutch_e2e::open_files(hutch.pid()).len() as u64 >= open + 4
    });
    // A connection that is open needs none.
    assert_eq!(sandbox.sh("echo still").await.1, "still\n");
    drop(strangers);
    let usual = Rlimit {
        current: usual.current,
        maximum: usual.maximum,
    };
    prlimit(pid, Resource::Nofile, usual).unwrap();
    let late = hutch.api().await;
    assert_eq!(late.sandbox("main").sh("echo again").await.1, "again\n");
}
