//! `hutch itx run`.

use super::{good, json, refused, with_sandbox};
use hutch_e2e::Hutch;
use serde_json::{Value, json};

#[test]
fn the_smoke_test_runs_as_written() {
    let hutch = Hutch::start();
    good(&hutch.cli(&["project", "create", "demo"]));
    let script = r#"const path = "/sandboxes/smoke";
      const sb = await itx.sandboxes.get(path).create({ instanceType: "lite" });
      const r = await sb.exec("ls /");
      return { exitCode: r.exitCode, stdout: r.stdout };"#;
    let value = json(&hutch.cli(&["itx", "run", "--context", "demo", "-e", script]));
    assert_eq!(value["exitCode"], 0);
    assert!(value["stdout"].as_str().unwrap().contains("workspace\n"));
}

#[test]
fn the_first_example_of_the_manual_runs_as_written() {
    let hutch = Hutch::start();
    let script = r#"
      const path = "/sandboxes/main";
      const sandbox = await itx.sandboxes.get(path).create({ instanceType: "basic" });
      await sandbox.exec("echo hi"); // first command boots the container
      await sandbox.startProcess("sleep 100");
      await sandbox.sleep(); // snapshot /workspace, tear the container down — the pet survives
      await sandbox.start(); // boot now (rather than lazily), snapshot restored
      await sandbox.destroy(); // permanent; the name is retired
      return await itx.sandboxes.list();"#;
    let list = json(&hutch.cli(&["itx", "run", "-e", script]));
    assert_eq!(list[0]["path"], "/sandboxes/main");
    assert_eq!(list[0]["status"], "destroyed");
}

#[test]
fn byte_streams_flow_both_ways() {
    let hutch = with_sandbox();
    let script = r#"
      const text = new TextEncoder();
      async function* lines() { yield text.encode("one\n"); yield text.encode("two\n") }
      const program = await itx.sandboxes.get("/sandboxes/main").spawn({ argv: ["tac"], stdin: lines() });
      const decoder = new TextDecoder();
      let out = "";
      for await (const chunk of program.stdout) out += decoder.decode(chunk, { stream: true });
      return { out, end: await program.exit() };"#;
    let value = json(&hutch.cli(&["itx", "run", "-e", script]));
    assert_eq!(
        value,
        json!({"out": "two\none\n", "end": {"exitCode": 0, "timedOut": false}})
    );
}

#[test]
fn a_function_receives_events() {
    let hutch = Hutch::start();
    let script = r#"
      const stream = itx.streams.get("/notes");
      let arrived;
      const first = new Promise((resolve) => { arrived = resolve });
      const subscription = await stream.subscribe({ processEventBatch: (batch) => arrived(batch.events[0]) });
      await stream.append({ type: "notes/added", payload: { text: "hi" } });
      const event = await first;
      await subscription.close();
      return [event.type, event.payload, event.offset];"#;
    let value = json(&hutch.cli(&["itx", "run", "--json", "-e", script]));
    assert_eq!(value, json!(["notes/added", {"text": "hi"}, 1]));
}

#[test]
fn a_file_and_standard_input_are_scripts_too() {
    let hutch = Hutch::start();
    let file = hutch.data_dir().with_file_name("script.js");
    std::fs::write(
        &file,
        "#!/usr/bin/env hutch\nconsole.log('note'); return 1 + 1\n",
    )
    .unwrap();
    let output = hutch.cli(&["itx", "run", file.to_str().unwrap()]);
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"2\n"[..], &b"note\n"[..])
    );
    let output = hutch.cli_with(&["itx", "run", "-"], b"return itx.slug");
    assert_eq!(good(&output), "\"default\"\n");
}

#[test]
fn a_typed_error_is_told_by_name_message_and_code() {
    let hutch = Hutch::start();
    let script = "await itx.sandboxes.get('/sandboxes/none').exec('true')";
    let output = hutch.cli(&["itx", "run", "-e", script]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.starts_with("error: sandbox /sandboxes/none does not exist"),
        "{text}"
    );
    let told = |args: &[&str]| -> Value {
        let output = hutch.cli(&[&["--json"], args].concat());
        assert_eq!(refused(&output), (1, "SANDBOX_NOT_FOUND".to_owned()));
        serde_json::from_slice(&output.stderr).unwrap()
    };
    assert_eq!(
        told(&["itx", "run", "-e", script]),
        told(&["sandbox", "start", "none"]),
        "a script and a command tell the same"
    );
    let output = hutch.cli(&["itx", "run", "-e", "throw new RangeError('x')"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("error: RangeError: x\n"), "{text}");
}

#[test]
fn an_unknown_context_makes_nothing() {
    let hutch = Hutch::start();
    let output = hutch.cli(&[
        "itx",
        "run",
        "--json",
        "--context",
        "nope",
        "-e",
        "return 1",
    ]);
    assert_eq!(refused(&output), (1, "PROJECT_NOT_FOUND".to_owned()));
    let projects = json(&hutch.cli(&["project", "list", "--json"]));
    assert_eq!(projects.as_array().unwrap().len(), 1);
}
