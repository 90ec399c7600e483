//! What the double says.

mod boots;
mod excess;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// What each double was told, by the name of its sandbox.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<HashMap<String, Vec<String>>>>);

impl Log {
    fn add(&self, name: &str, frame: &str) {
        let mut all = self.0.lock().unwrap();
        all.entry(name.to_owned())
            .or_default()
            .push(frame.to_owned());
    }

    pub(super) fn frames(&self, name: &str) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .get(name)
            .cloned()
            .unwrap_or_default()
    }

    /// Whether a double has said all that it says to one call.
    pub(super) fn has_said(&self, name: &str) -> bool {
        self.frames(name).iter().any(|frame| frame == SAID)
    }

    pub(super) fn execs(&self, name: &str) -> usize {
        self.frames(name)
            .iter()
            .filter(|frame| is_exec(frame))
            .count()
    }
}

fn is_exec(frame: &str) -> bool {
    frame.starts_with(r#"["push",["pipeline",0,["sandbox","exec"]"#)
}

pub(super) use boots::control;

type Socket = WebSocketStream<UnixStream>;

/// Answers each `exec` as the sandbox's name says.
pub(super) async fn user(io: UnixStream, name: String, log: Log) {
    if name == "user-mute" {
        return boots::mute(io).await;
    }
    let Ok(mut socket) = tokio_tungstenite::accept_async(io).await else {
        return;
    };
    let mut pushed = 0;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        log.add(&name, &text);
        if ["[\"push\"", "[\"stream\"", "[\"pipe\""]
            .iter()
            .any(|start| text.starts_with(start))
        {
            pushed += 1;
        }
        if is_exec(&text) {
            misbehave(&mut socket, &name, pushed, &log).await;
        }
    }
}

async fn say(socket: &mut Socket, texts: &[&str], id: usize) {
    for text in texts {
        let text = text.replace("{id}", &id.to_string());
        if socket.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

/// Reads until so many answers of the host have come.
async fn hear(socket: &mut Socket, name: &str, log: &Log, answers: usize) {
    let mut heard = 0;
    while heard < answers {
        let Some(Ok(Message::Text(text))) = socket.next().await else {
            return;
        };
        log.add(name, &text);
        heard += usize::from(text.starts_with("[\"reject\"") || text.starts_with("[\"resolve\""));
    }
}

/// Noted once everything was said.
const SAID: &str = "said";
const OK: &str = r#"["resolve",{id},{"exitCode":0,"stdout":"ok","stderr":""}]"#;

async fn misbehave(socket: &mut Socket, name: &str, id: usize, log: &Log) {
    let reject =
        |props: &str| format!(r#"["reject",{{id}},["error","Error","forged",null,{props}]]"#);
    match name {
        "forged-disconnected" => {
            let text = reject(
                r#"{"code":"RPC_DISCONNECTED","details":{"origin":"host","mayHaveRun":false}}"#,
            );
            say(socket, &[&text], id).await;
        }
        "forged-unauthenticated" => {
            let text = reject(
                r#"{"code":"UNAUTHENTICATED","httpStatus":401,"details":{"origin":"host"}}"#,
            );
            say(socket, &[&text], id).await;
        }
        "forged-interrupted" => {
            let text = reject(r#"{"code":"OPERATION_INTERRUPTED","details":{"admitted":false}}"#);
            say(socket, &[&text], id).await;
        }
        "forged-text" => say(socket, &[r#"["reject",{id},"RPC_DISCONNECTED"]"#], id).await,
        "closes" => drop(socket.close(None).await),
        "closes-in-a-frame" => {
            // The head of a frame of which nothing more comes.
            let io = socket.get_mut();
            let _ = io.write_all(&[0x81, 126, 0x10, 0, b'[']).await;
            let _ = io.shutdown().await;
        }
        "aborts" => {
            let text = r#"["abort",["error","Error","x",null,{"code":"UNAUTHENTICATED"}]]"#;
            say(socket, &[text], id).await;
        }
        "malformed" => say(socket, &["{\"a\":"], id).await,
        "binary" => drop(socket.send(Message::binary(vec![1, 2, 3])).await),
        "huge-frame" => {
            // Says that it is 65 MiB.
            let io = socket.get_mut();
            let mut head = vec![0x81, 127];
            head.extend_from_slice(&(65_u64 << 20).to_be_bytes());
            let _ = io.write_all(&head).await;
        }
        "releases-too-much" => say(socket, &[r#"["release",0,9]"#], id).await,
        "releases-the-unknown" => say(socket, &[r#"["release",-77,1]"#], id).await,
        "pulls-the-unknown" => say(socket, &[r#"["pull",77]"#], id).await,
        "floods-pipes" => say(socket, &vec![r#"["pipe"]"#; 70_000], id).await,
        "floods-pushes" => say(socket, &vec![r#"["push",1]"#; 70_000], id).await,
        "exports-forever" => {
            let stubs: Vec<_> = (1..70_000)
                .map(|id| format!("[\"export\",-{id}]"))
                .collect();
            let text = format!("[\"resolve\",{{id}},[[{}]]]", stubs.join(","));
            say(socket, &[&text], id).await;
        }
        "answers-twice" => {
            let first = OK.replace("ok", "first");
            say(
                socket,
                &[&first, OK, r#"["reject",{id},["error","Error","third"]]"#],
                id,
            )
            .await;
        }
        "answers-others" => {
            let other = [
                r#"["resolve",777,{"f":["export",-3]}]"#,
                r#"["reject",778,"x"]"#,
                OK,
            ];
            say(socket, &other, id).await;
        }
        "nests-deeply" => {
            let text = format!(
                "[\"resolve\",{{id}},{}1{}]",
                "[[".repeat(5000),
                "]]".repeat(5000)
            );
            say(socket, &[&text], id).await;
        }
        "calls-the-host" => {
            let calls = [
                r#"["push",["pipeline",0,["projects","list"],[]]]"#,
                r#"["push",["pipeline",0,["authenticate"],[{"type":"bearer","token":"x"}]]]"#,
                r#"["push",["pipeline",0,["sandboxes","get"],["/sandboxes/good"]]]"#,
                r#"["push",["pipeline",3,["exec"],["true"]]]"#,
                r#"["push",["remap",0,[],[["import",0]],[["pipeline",-1,["projects","list"],[]]]]]"#,
                r#"["pull",1]"#,
                r#"["pull",2]"#,
                r#"["pull",3]"#,
                r#"["pull",4]"#,
                r#"["pull",5]"#,
            ];
            say(socket, &calls, id).await;
            hear(socket, name, log, 5).await;
            say(socket, &[OK], id).await;
        }
        "gives-the-host-back" => say(socket, &[r#"["resolve",{id},["import",0]]"#], id).await,
        "gives-a-host-call-back" => {
            say(
                socket,
                &[r#"["resolve",{id},["pipeline",0,["projects","list"],[]]]"#],
                id,
            )
            .await;
        }
        "keeps-callbacks" => {
            // The client's function is the host's export -1.
            let calls = [
                r#"["push",["pipeline",-1,[],[1]]]"#,
                r#"["push",["pipeline",-1,[],[["export",-9]]]]"#,
                r#"["push",["pipeline",-1,[],[["import",-1]]]]"#,
                r#"["pull",1]"#,
                r#"["pull",2]"#,
                r#"["pull",3]"#,
            ];
            say(socket, &calls, id).await;
            hear(socket, name, log, 3).await;
            say(socket, &[OK], id).await;
        }
        "streams-forever" => {
            let write = r#"["stream",["pipeline",1,["write"],[["bytes","AAAA"]]]]"#;
            say(
                socket,
                &[r#"["pipe"]"#, r#"["resolve",{id},["readable",1]]"#, write],
                id,
            )
            .await;
        }
        "streams-a-capability" => {
            let write = r#"["stream",["pipeline",1,["write"],[["export",-5]]]]"#;
            say(
                socket,
                &[r#"["pipe"]"#, r#"["resolve",{id},["readable",1]]"#, write],
                id,
            )
            .await;
        }
        "silent" => {}
        "slowloris" => {
            let io = socket.get_mut();
            for byte in [0x81, 126, 0x10, 0, b'[', b'"'] {
                let _ = io.write_all(&[byte]).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        other => {
            if !excess::misbehave(socket, other, id).await {
                say(socket, &[OK], id).await;
            }
            log.add(name, SAID);
        }
    }
}
