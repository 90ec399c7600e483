//! One operation, done.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use capnweb::{ErrorValue, Value};
use hutch_e2e::{Api, Handle};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::daemon;
use crate::history::{Outcome, View};
use crate::plan::{Op, Step, dozes};

/// What the steps of one run share.
pub struct Shared {
    data_dir: PathBuf,
    /// By sandbox: processes that were started, with their boots.
    processes: Mutex<HashMap<String, Vec<(String, String)>>>,
}

impl Shared {
    pub fn of(data_dir: PathBuf) -> Self {
        let processes = Mutex::default();
        Self {
            data_dir,
            processes,
        }
    }
}

/// Text that a file of a step holds; a part of it is no whole file.
pub fn body(step: usize) -> String {
    format!("<{}>", format!("step {step} ").repeat(20))
}

const LOOK: &str = "printf 'env %s %s\\n' \"${A:--}\" \"${B:--}\"; ls | sed 's/^/file /'; grep -H '' w* /dev/null; true";

/// Does one operation.
pub async fn perform(step: &Step, api: &Api, shared: &Shared) -> Outcome {
    let name = step.name();
    let sandbox = api.sandbox(&name);
    let file = format!("w{}", step.number);
    let done = |result: Result<Value, ErrorValue>| result.map(|_| Outcome::Done);
    let result = match step.op {
        Op::Create => {
            let mut options = json!({"instanceType": "lite"});
            if dozes(&name) {
                options["sleepAfter"] = json!(2);
            }
            done(sandbox.call("create", &[options]).await)
        }
        Op::Write => {
            let text = body(step.number);
            look(
                &sandbox,
                &format!(
                    "printf '%s\\n' '{text}' > .{file} && mv .{file} {file} || exit 9; {LOOK}"
                ),
            )
            .await
        }
        Op::Look => look(&sandbox, LOOK).await,
        Op::Put => {
            let text = body(step.number) + "\n";
            done(
                sandbox
                    .call(
                        "writeFile",
                        &[json!(format!("/workspace/{file}")), json!(text)],
                    )
                    .await,
            )
        }
        Op::Spawn => spawn(&sandbox, &name, shared).await,
        Op::Processes => processes(&sandbox, &name, shared).await,
        Op::SetEnv(key) => {
            let patch = json!({ key: step.number.to_string() });
            done(sandbox.call("setEnvVars", &[patch]).await)
        }
        Op::Start => done(sandbox.call("start", &[]).await),
        Op::Sleep => done(sandbox.call("sleep", &[]).await),
        Op::Restart => done(sandbox.call("restart", &[]).await),
        Op::Destroy => done(sandbox.call("destroy", &[]).await),
        Op::KillDaemon => kill_daemon(&sandbox, shared).await,
        Op::KillServer(_) => Ok(Outcome::Done),
    };
    result.unwrap_or_else(|error| refused(&error))
}

fn refused(error: &ErrorValue) -> Outcome {
    let code = error.code().unwrap_or_default().to_owned();
    if code == capnweb::codes::DISCONNECTED {
        return Outcome::Lost;
    }
    let admitted = error
        .details()
        .and_then(|details| details.get("admitted"))
        .and_then(Value::as_bool);
    Outcome::Refused {
        code,
        admitted,
        message: error.message.clone(),
    }
}

/// Runs a command and reads what it saw.
async fn look(sandbox: &Handle, command: &str) -> Result<Outcome, ErrorValue> {
    let answer = sandbox.call("exec", &[json!(command)]).await?;
    let text = |name: &str| {
        answer
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let code = answer.get("exitCode").and_then(Value::as_i64);
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    // There may be no file yet.
    let complaints = stderr
        .lines()
        .filter(|line| !line.contains("w*: No such file"));
    if code != Some(0) || complaints.count() > 0 {
        return Ok(Outcome::Absurd(format!("exit {code:?}, stderr {stderr:?}")));
    }
    let mut view = View::default();
    for line in stdout.lines() {
        if let Some(env) = line.strip_prefix("env ") {
            let values = env.split(' ').map(str::to_owned);
            view.env = ["A", "B"].into_iter().zip(values).collect();
        } else if let Some(file) = line.strip_prefix("file ") {
            view.files.entry(file.to_owned()).or_default();
        } else if let Some((file, text)) = line.split_once(':') {
            view.files.insert(file.to_owned(), text.to_owned());
        } else {
            return Ok(Outcome::Absurd(format!(
                "a line that nobody wrote: {line:?}"
            )));
        }
    }
    Ok(Outcome::Saw(view))
}

async fn boot_of(sandbox: &Handle) -> Result<Option<String>, ErrorValue> {
    let described = sandbox.call("describe", &[]).await?;
    Ok(described
        .get("bootId")
        .and_then(Value::as_str)
        .map(str::to_owned))
}

async fn spawn(sandbox: &Handle, name: &str, shared: &Shared) -> Result<Outcome, ErrorValue> {
    let process = sandbox
        .call("startProcess", &[json!("exec sleep 100000")])
        .await?;
    let id = process
        .get("id")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(boot) = boot_of(sandbox).await? else {
        return Ok(Outcome::Done);
    };
    // Of which boot it is, is known only if it still runs there.
    let found = sandbox.call("getProcess", &[json!(id)]).await?;
    let steady = boot_of(sandbox).await?.as_ref() == Some(&boot);
    if steady && runs(&found) {
        let mut processes = shared.processes.lock().unwrap();
        processes
            .entry(name.to_owned())
            .or_default()
            .push((id, boot.clone()));
    }
    Ok(Outcome::Boot {
        boot,
        steady,
        missing: None,
    })
}

fn runs(process: &Value) -> bool {
    process.get("status").and_then(Value::as_str) == Some("running")
}

/// Whether processes of this boot still run.
async fn processes(sandbox: &Handle, name: &str, shared: &Shared) -> Result<Outcome, ErrorValue> {
    let Some(boot) = boot_of(sandbox).await? else {
        return Ok(Outcome::Done);
    };
    let known: Vec<_> = {
        let processes = shared.processes.lock().unwrap();
        let all = processes.get(name).into_iter().flatten();
        all.filter(|(_, of)| *of == boot)
            .map(|(id, _)| id.clone())
            .collect()
    };
    let mut missing = None;
    for id in known {
        let found = sandbox.call("getProcess", &[json!(id)]).await?;
        if !runs(&found) {
            missing = Some(id);
        }
    }
    let steady = boot_of(sandbox).await?.as_ref() == Some(&boot);
    Ok(Outcome::Boot {
        boot,
        steady,
        missing,
    })
}

/// Kills PID 1 and waits until the server has seen it.
async fn kill_daemon(sandbox: &Handle, shared: &Shared) -> Result<Outcome, ErrorValue> {
    let Some(boot) = boot_of(sandbox).await? else {
        return Ok(Outcome::Skipped);
    };
    let (dir, of) = (shared.data_dir.clone(), boot.clone());
    let found = tokio::task::spawn_blocking(move || daemon::of_boot(&dir, &of));
    let Some(pid) = found
        .await
        .unwrap()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw)
    else {
        return Ok(Outcome::Skipped);
    };
    // It may have ended since.
    let _ = kill_process(pid, Signal::KILL);
    while boot_of(sandbox).await?.as_ref() == Some(&boot) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(Outcome::Done)
}

/// All events of a sandbox.
pub async fn events(api: &Api, name: &str) -> Vec<Json> {
    let stream = api.stream(&format!("/sandboxes/{name}"));
    let mut all: Vec<Json> = Vec::new();
    loop {
        let after = json!({"afterOffset": all.len(), "limit": 100});
        let page = stream.json("getEvents", &[after]).await;
        let page = page.as_array().unwrap().clone();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}
