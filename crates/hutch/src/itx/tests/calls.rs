//! Calls, results, errors and functions.

use super::*;
use serde_json::json;

#[tokio::test]
async fn the_smoke_test_of_the_manual_runs() {
    let source = r#"const path = "/sandboxes/smoke";
      const sb = await itx.sandboxes.get(path).create({ instanceType: "lite" });
      const r = await sb.exec("ls /");
      return { exitCode: r.exitCode, stdout: r.stdout };"#;
    assert_eq!(
        value(source).await,
        json!({"exitCode": 0, "stdout": "ls /"})
    );
}

#[tokio::test]
async fn calls_are_sent_in_order_without_waiting() {
    let fake = Arc::<Fake>::default();
    let source = "const a = itx.echo(1), b = itx.sandboxes.get('x').create({}); await b.exec('c'); return await a;";
    let outcome = outcome_with(fake.clone(), source).await;
    assert!(matches!(outcome, Outcome::Value { json, .. } if json == "1"));
    assert_eq!(
        *fake.calls.lock().unwrap(),
        ["echo", "sandboxes.get", "create", "exec"]
    );
}

#[tokio::test]
async fn parts_of_a_result_can_be_awaited_before_it_arrives() {
    assert_eq!(value("return itx.exec('x').stdout").await, json!("x"));
    assert_eq!(value("return itx.exec('x').nested.list[1]").await, json!(2));
}

#[tokio::test]
async fn properties_are_read_by_await() {
    assert_eq!(value("return await itx.projectId").await, json!("prj_1"));
}

#[tokio::test]
async fn results_in_the_returned_value_need_no_await() {
    let source = "return { a: itx.echo(1), b: [itx.echo(2)] }";
    assert_eq!(value(source).await, json!({"a": 1, "b": [2]}));
}

#[tokio::test]
async fn a_result_can_be_an_argument_before_it_arrives() {
    assert_eq!(value("return itx.echo(itx.echo(7))").await, json!(7));
}

#[tokio::test]
async fn an_awaited_object_is_no_promise() {
    let source = "const sb = await itx.sandboxes.get('x'); const same = await sb; return [sb.then === undefined, same === sb]";
    assert_eq!(value(source).await, json!([true, true]));
}

#[tokio::test]
async fn typed_errors_keep_code_details_and_status() {
    let error = error("await itx.fail()").await;
    assert_eq!(error.code.as_deref(), Some("SANDBOX_NOT_FOUND"));
    assert_eq!(error.message, "no such sandbox");
    assert_eq!(error.details, Some(json!({"path": "/sandboxes/a"})));
    assert_eq!(error.http_status, Some(404));
}

#[tokio::test]
async fn a_script_can_catch_an_error() {
    let source =
        "try { await itx.fail() } catch (e) { return [e instanceof Error, e.code, e.httpStatus] }";
    assert_eq!(value(source).await, json!([true, "SANDBOX_NOT_FOUND", 404]));
    assert_eq!(
        value("return itx.fail().catch((e) => e.code)").await,
        json!("SANDBOX_NOT_FOUND")
    );
}

#[tokio::test]
async fn an_unknown_method_is_a_type_error() {
    assert_eq!(error("await itx.nope()").await.name, "TypeError");
}

#[tokio::test]
async fn the_server_can_call_functions_of_the_script() {
    assert_eq!(value("return itx.apply((a, b) => a + b)").await, json!(42));
    assert_eq!(
        value("return itx.apply(async (a) => { await null; return a })").await,
        json!(20)
    );
}

#[tokio::test]
async fn an_error_in_such_a_function_comes_back() {
    let error = error("await itx.apply(() => { throw new RangeError('no') })").await;
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "no")
    );
}

#[tokio::test]
async fn a_call_nobody_awaits_is_made_all_the_same() {
    let fake = Arc::<Fake>::default();
    outcome_with(fake.clone(), "itx.echo(1); await itx.echo(2)").await;
    assert_eq!(fake.calls.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn results_are_released_when_the_script_lets_go() {
    let connection = join(Arc::default()).await;
    let script = Script {
        name: "test".to_owned(),
        source: "for (let i = 0; i < 200; i++) await itx.sandboxes.get('x')".to_owned(),
        indent: 0,
    };
    let outcome = run(script, connection.main(), Limits::default()).1.await;
    assert!(matches!(outcome, Outcome::Value { .. }), "{outcome:?}");
    assert!(connection.stats().imports < 20, "{:?}", connection.stats());
}

#[tokio::test]
async fn names_of_every_object_are_not_sent() {
    let fake = Arc::<Fake>::default();
    let source = "return [itx.constructor, itx.toJSON, itx.__proto__, `${itx}`]";
    let Outcome::Value { json: text, .. } = outcome_with(fake.clone(), source).await else {
        panic!("threw");
    };
    assert_eq!(text, r#"[null,null,null,"[remote object]"]"#);
    assert!(fake.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn calls_that_nobody_awaits_are_counted() {
    for (source, count) in [
        ("itx.echo(1)", 1),
        ("const kept = itx.echo(1)", 1),
        ("await itx.echo(1)", 0),
        ("await itx.echo(itx.echo(1))", 0),
        ("await itx.sandboxes.get('x').create({}).exec('x')", 0),
        ("return { later: itx.echo(1) }", 0),
    ] {
        let outcome = outcome_with(Arc::default(), source).await;
        let Outcome::Value { forgotten, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(forgotten, count, "{source}");
    }
}
