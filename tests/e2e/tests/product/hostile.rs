//! Clients that know the wire and mean no good, before and after they have
//! shown a key.

use hutch_e2e::{Api, Handle, Hutch, TEXT, Wire, peak_kib, resident_kib};
use serde_json::json;

/// A server with one sandbox that runs, and an honest client.
struct World {
    hutch: Hutch,
    api: Api,
    sandbox: Handle,
    before: u64,
}

impl World {
    async fn new() -> Self {
        let hutch = Hutch::start();
        let api = hutch.api().await;
        let sandbox = api.create("main", json!({})).await;
        sandbox.sh("true").await;
        let before = resident_kib(hutch.pid());
        Self {
            hutch,
            api,
            sandbox,
            before,
        }
    }

    /// The open connection is served, and so is a new one.
    async fn others_are_served(&self) {
        assert_eq!(self.sandbox.sh("echo on").await.1, "on\n");
        let late = self.hutch.api().await;
        assert_eq!(late.sandbox("main").sh("echo in").await.1, "in\n");
        assert!(!self.api.connection.is_closed());
    }

    /// The server never took that much more, in MiB.
    fn took_less_than(&self, mib: u64) {
        let grown = peak_kib(self.hutch.pid()).saturating_sub(self.before);
        assert!(grown < mib * 1024, "the server grew by {grown} KiB");
    }
}

/// What no WebSocket client sends.
fn breaches() -> Vec<Vec<u8>> {
    let mask = [0; 4];
    vec![
        // Not masked; reserved bits; unknown opcodes.
        vec![TEXT, 2, b'[', b']'],
        vec![0xc1, 0x82, 0, 0, 0, 0, b'[', b']'],
        vec![0x83, 0x80, 0, 0, 0, 0],
        vec![0x8b, 0x80, 0, 0, 0, 0],
        // A ping in pieces, and one that is too long.
        vec![0x09, 0x81, 0, 0, 0, 0, b'x'],
        [&[0x89, 0xfe, 0, 200][..], &mask, &[0; 200]].concat(),
        // Bytes for text, and text that is none.
        vec![0x82, 0x82, 0, 0, 0, 0, b'[', b']'],
        vec![TEXT, 0x82, 0, 0, 0, 0, b'"', 0xff],
        // Goes on with nothing; begins within another.
        vec![0x80, 0x81, 0, 0, 0, 0, b'x'],
        [
            &[0x01, 0x81, 0, 0, 0, 0, b'['][..],
            &[TEXT, 0x81, 0, 0, 0, 0, b']'],
        ]
        .concat(),
        // Sizes that nobody has.
        [&[TEXT, 0xff][..], &u64::MAX.to_be_bytes(), &mask].concat(),
        [&[TEXT, 0xff][..], &(1_u64 << 40).to_be_bytes(), &mask].concat(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breach_of_the_websocket_ends_its_connection_alone() {
    let world = World::new().await;
    let mut wires = Vec::new();
    for breach in breaches() {
        for mut wire in [Wire::stranger(&world.hutch), Wire::known(&world.hutch)] {
            wire.bytes(&breach);
            wires.push(wire);
        }
    }
    for wire in wires {
        wire.rest();
    }
    world.others_are_served().await;
    world.took_less_than(64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_pieces_is_one_message() {
    let world = World::new().await;
    let mut wire = Wire::stranger(&world.hutch);
    let [authenticate, ..] = Wire::greeting(&world.hutch);
    let (first, rest) = authenticate.as_bytes().split_at(10);
    wire.frame(0x01, first);
    wire.frame(0x89, b"still there?");
    for byte in &rest[..rest.len() - 1] {
        wire.frame(0x00, &[*byte]);
    }
    wire.frame(0x80, &rest[rest.len() - 1..]);
    wire.text(r#"["pull",1]"#);
    assert_eq!(wire.hear(), Some((0x8a, b"still there?".to_vec())));
    assert!(wire.hears("[\"resolve\",1,"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_cannot_build_what_the_server_falls_over() {
    let world = World::new().await;
    // As many promises of promises as fit before a key is due.
    let mut wire = Wire::stranger(&world.hutch);
    wire.text(r#"["push",{"a":["promise",-1]}]"#);
    for id in 1..40_000 {
        if !wire.text(&format!(r#"["resolve",-{id},["promise",-{}]]"#, id + 1)) {
            break;
        }
    }
    wire.text(r#"["release",1,1]"#);
    drop(wire);
    world.others_are_served().await;
    world.took_less_than(128);
}

/// Says a message for each number, and goes on while it is let.
fn flood(wire: &mut Wire, ids: std::ops::Range<usize>, each: impl Fn(usize) -> Vec<String>) {
    for id in ids {
        for text in each(id) {
            if !wire.text(&text) {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_calls_without_reading_end_one_connection() {
    let world = World::new().await;
    let mut wire = Wire::known(&world.hutch);
    flood(&mut wire, 4..100_004, |id| {
        let call = r#"["push",["pipeline",1,["whoami"],[]]]"#.to_owned();
        vec![call, format!("[\"pull\",{id}]")]
    });
    world.others_are_served().await;
    wire.rest();
    let mut wire = Wire::known(&world.hutch);
    flood(&mut wire, 0..100_000, |_| vec![r#"["pull",1]"#.to_owned()]);
    world.others_are_served().await;
    drop(wire);
    world.took_less_than(256);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bombs_go_off_in_their_own_call() {
    let world = World::new().await;
    let mut wire = Wire::known(&world.hutch);
    // Each call on the result of the one before, of which the first fails.
    wire.text(r#"["push",["pipeline",1,["nope"],[]]]"#);
    flood(&mut wire, 4..10_000, |id| {
        vec![format!("[\"push\",[\"pipeline\",{id},[\"x\"],[]]]")]
    });
    wire.text(r#"["pull",10000]"#);
    assert!(wire.hears("[\"reject\",10000,"));
    // A map over a long list of which each step doubles the one before.
    let list = format!("[\"push\",[[{}1]]]", "1,".repeat(999));
    let steps: Vec<_> = (0..60)
        .map(|step| format!("[[[\"pipeline\",{step}],[\"pipeline\",{step}]]]"))
        .collect();
    wire.text(&list);
    wire.text(&format!(
        "[\"push\",[\"remap\",10001,[],[],[{}]]]",
        steps.join(",")
    ));
    wire.text(r#"["pull",10002]"#);
    assert!(wire.hears("[\"reject\",10002,"));
    // Blobs whose content never comes.
    flood(&mut wire, 0..10_000, |at| {
        let pipe = 10_003 + 2 * at;
        let blob = format!("[\"push\",[\"blob\",\"text/plain\",[\"readable\",{pipe}]]]");
        vec!["[\"pipe\"]".to_owned(), blob]
    });
    wire.text(r#"["push",["pipeline",1,["whoami"],[]]]"#);
    wire.text(r#"["pull",30003]"#);
    assert!(wire.hears("[\"resolve\",30003,"));
    // An id that was given back may not be used again.
    wire.text(r#"["release",10002,1]"#);
    wire.text(r#"["pull",10002]"#);
    wire.rest();
    world.others_are_served().await;
    world.took_less_than(256);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stops_reading_costs_a_window_and_nobody_else_waits() {
    let world = World::new().await;
    let mut wires = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::known(&world.hutch);
        wire.text(
            r#"["push",["pipeline",3,["spawn"],[{"command":"head -c 500000000 /dev/zero"}]]]"#,
        );
        wire.text(r#"["pull",4]"#);
        wires.push(wire);
    }
    // It acknowledges what it has not read, so the stream's own window is open.
    for round in 0..20 {
        for wire in &mut wires {
            flood(wire, 1..2000, |id| {
                vec![format!("[\"resolve\",{id},[\"undefined\"]]")]
            });
        }
        if round % 10 == 0 {
            world.others_are_served().await;
        }
    }
    world.others_are_served().await;
    world.took_less_than(128);
}

/// The head of a batch.
fn post(hutch: &Hutch, framing: &str) -> Wire {
    let mut wire = Wire::connect(hutch);
    let host = hutch.url().trim_start_matches("http://");
    wire.bytes(
        format!("POST /api HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{framing}\r\n\r\n")
            .as_bytes(),
    );
    wire
}

fn status(wire: Wire) -> String {
    let rest = wire.rest();
    let line = rest.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_without_end_are_refused() {
    let world = World::new().await;
    // A stranger's, by size and by time.
    let mut endless = post(&world.hutch, "Transfer-Encoding: chunked");
    let chunk = [&b"10000\r\n"[..], &[b'x'; 65_536], b"\r\n"].concat();
    for _ in 0..200 {
        if !endless.bytes(&chunk) {
            break;
        }
    }
    drop(endless);
    let mut waiting = post(&world.hutch, "Content-Length: 1000");
    waiting.bytes(b"[\"push\",");
    let malformed = post(
        &world.hutch,
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    );
    // Of somebody known, more than fits.
    let mut large = post(&world.hutch, "Content-Length: 200000000");
    large.bytes((Wire::greeting(&world.hutch).join("\n") + "\n").as_bytes());
    let line = format!("[\"push\",\"{}\"]\n", "x".repeat(1 << 20));
    while large.bytes(line.as_bytes()) {}
    drop(large);
    // A hundred thousand calls in one.
    let mut many = Wire::greeting(&world.hutch).join("\n");
    for id in 4..100_004 {
        many += &format!("\n[\"push\",[\"pipeline\",1,[\"whoami\"],[]]]\n[\"pull\",{id}]");
    }
    let mut calls = post(&world.hutch, &format!("Content-Length: {}", many.len()));
    calls.bytes(many.as_bytes());
    world.others_are_served().await;
    let answer = String::from_utf8_lossy(&calls.rest()).into_owned();
    assert!(answer.contains("RPC_TABLE_FULL"), "{answer:.300}");
    assert_eq!(status(waiting), "HTTP/1.1 401 Unauthorized");
    malformed.rest();
    world.others_are_served().await;
    world.took_less_than(384);
}
