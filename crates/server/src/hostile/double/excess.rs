//! Too much, too long, in a circle, or in pieces.

use futures_util::SinkExt;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use super::{OK, Socket, say};

const PIPE: &str = r#"["pipe"]"#;
const STREAM: &str = r#"["resolve",{id},["readable",1]]"#;
const CHUNK: &str = r#"["stream",["pipeline",1,["write"],[["bytes","AAAA"]]]]"#;

/// Does what the name says, if it is one of these.
pub(super) async fn misbehave(socket: &mut Socket, name: &str, id: usize) -> bool {
    match name {
        "fragments" => in_fragments(socket, &OK.replace("{id}", &id.to_string())).await,
        "fragments-forever" => {
            let io = socket.get_mut();
            let _ = io.write_all(&[0x01, 0]).await;
            let piece = [
                &[0x00, 127][..],
                &(1_u64 << 20).to_be_bytes(),
                &vec![b' '; 1 << 20],
            ]
            .concat();
            while io.write_all(&piece).await.is_ok() {}
        }
        "pings-forever" => {
            for _ in 0..10_000 {
                let _ = socket.feed(Message::Ping(vec![b'p'; 100].into())).await;
            }
            say(socket, &[OK], id).await;
        }
        "giant-error" => {
            let text = format!(
                r#"["reject",{{id}},["error","Error","{0}",null,{{"code":"FILE_NOT_FOUND","details":{{"path":"{0}"}}}}]]"#,
                "x".repeat(20 << 20)
            );
            say(socket, &[&text], id).await;
        }
        "a-million-values" => {
            let text = format!("[\"resolve\",{{id}},[[{}1]]]", "1,".repeat(2 << 20));
            say(socket, &[&text], id).await;
        }
        "a-number" => say(socket, &[r#"["resolve",{id},7]"#], id).await,
        "floods-a-stream" => {
            let chunk = "A".repeat(1 << 20);
            let write = format!(r#"["stream",["pipeline",1,["write"],[["bytes","{chunk}"]]]]"#);
            say(socket, &[PIPE, STREAM], id).await;
            say(socket, &vec![write.as_str(); 200], id).await;
        }
        "ends-a-stream-halfway" => {
            say(socket, &[PIPE, STREAM, CHUNK], id).await;
            let _ = socket.get_mut().shutdown().await;
        }
        "lets-a-stream-go" => {
            say(socket, &[PIPE, STREAM, CHUNK, r#"["release",1,1]"#], id).await;
        }
        "fails-a-stream-at-length" => {
            let text = "x".repeat(20 << 20);
            let abort =
                format!(r#"["stream",["pipeline",1,["abort"],[["error","Error","{text}"]]]]"#);
            say(socket, &[PIPE, STREAM, &abort], id).await;
        }
        "promises-in-a-row" => {
            say(socket, &[r#"["resolve",{id},["promise",-5]]"#], id).await;
            for at in 5..50_000 {
                let next = format!("[\"resolve\",-{at},[\"promise\",-{}]]", at + 1);
                let _ = socket.feed(Message::text(next)).await;
            }
            say(socket, &[], id).await;
            let _ = socket.flush().await;
        }
        "promises-nothing" => say(socket, &[r#"["resolve",{id},["promise",-5]]"#], id).await,
        "calls-back-forever" => {
            let call = r#"["push",["pipeline",-1,[],[1]]]"#;
            say(socket, &vec![call; 5000], id).await;
            say(socket, &[OK], id).await;
        }
        other => match breach(other) {
            Some(Breach::Bytes(bytes)) => drop(socket.get_mut().write_all(&bytes).await),
            Some(Breach::Said(texts)) => say(socket, texts, id).await,
            None => return false,
        },
    }
    true
}

enum Breach {
    Bytes(Vec<u8>),
    Said(&'static [&'static str]),
}

/// What no honest daemon says.
fn breach(name: &str) -> Option<Breach> {
    let said = |texts| Some(Breach::Said(texts));
    let bytes = |bytes: &[u8]| Some(Breach::Bytes(bytes.to_vec()));
    match name {
        "no-websocket" => bytes(&b"HTTP/1.1 200 OK\r\n\r\n".repeat(10)),
        "no-utf8" => bytes(&[0x81, 2, b'"', 0xff]),
        "masked" => bytes(&[0x81, 0x82, 0, 0, 0, 0, b'[', b']']),
        "unknown-opcode" => bytes(&[0x83, 0]),
        "long-ping" => bytes(&[&[0x89, 126, 0, 200][..], &[0; 200]].concat()),
        "continues-nothing" => bytes(&[0x80, 1, b'[']),
        "gives-what-is-of-others" => said(&[r#"["resolve",{id},["import",5]]"#]),
        "writes-to-a-stream-of-others" => said(&[r#"["stream",["pipeline",99,["write"],[1]]]"#]),
        "gives-a-stream-twice" => said(&[
            PIPE,
            r#"["resolve",{id},{"a":["readable",1],"b":["readable",1]}]"#,
        ]),
        "promises-itself" => said(&[
            r#"["resolve",{id},["promise",-5]]"#,
            r#"["resolve",-5,["promise",-5]]"#,
            r#"["resolve",-5,{"a":["promise",-6],"b":["promise",-6]}]"#,
        ]),
        _ => None,
    }
}

/// A text of three frames with a ping between them.
async fn in_fragments(socket: &mut Socket, text: &str) {
    let io = socket.get_mut();
    let (first, rest) = text.as_bytes().split_at(1);
    let (second, third) = rest.split_at(10);
    for (head, part) in [
        (0x01, first),
        (0x00, second),
        (0x89, b"?".as_slice()),
        (0x80, third),
    ] {
        let size = u8::try_from(part.len()).unwrap();
        let _ = io.write_all(&[&[head, size], part].concat()).await;
    }
}
