//! What scripts find beside `itx`, and how they end.

use super::*;
use serde_json::json;

#[tokio::test]
async fn timers_fire_in_order_and_can_be_cleared() {
    let source = "const out = []; const never = setTimeout(() => out.push('never'), 1);
      setTimeout((x) => out.push(x), 5, 'b'); setTimeout(() => out.push('a'), 0); clearTimeout(never);
      await new Promise((done) => { let n = 0; const id = setInterval(() => { if (++n === 3) { clearInterval(id); done() } }, 3) });
      await new Promise((done) => setTimeout(done, 10));
      return out";
    assert_eq!(value(source).await, json!(["a", "b"]));
}

#[tokio::test]
async fn text_is_encoded_and_decoded() {
    let source = "const bytes = new TextEncoder().encode('a€'); const decoder = new TextDecoder();
      const split = decoder.decode(bytes.subarray(0, 2), { stream: true }) + '|' + decoder.decode(bytes.subarray(2));
      let refused; try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { refused = e.name }
      return [[...bytes], split, new TextDecoder().decode(new Uint8Array([97, 255])), refused, atob(btoa('hé'))]";
    assert_eq!(
        value(source).await,
        json!([[97, 226, 130, 172], "a|€", "a\u{fffd}", "TypeError", "hé"])
    );
}

#[tokio::test]
async fn a_thrown_value_need_not_be_an_error() {
    let error = error("throw 'plain'").await;
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("Error", "plain")
    );
}

#[tokio::test]
async fn stacks_name_the_line_of_the_script() {
    let error = error("\n\nthrow new Error('here')").await;
    assert!(
        error.stack.as_deref().unwrap().contains("test:3"),
        "{error:?}"
    );
}

#[tokio::test]
async fn wrong_syntax_is_an_error() {
    assert_eq!(error("return (").await.name, "SyntaxError");
}

#[tokio::test]
async fn a_script_that_waits_for_nothing_is_told() {
    let error = error("await new Promise(() => {})").await;
    assert!(error.message.contains("never ends"), "{}", error.message);
}

#[tokio::test]
async fn memory_is_limited() {
    let error = error("const a = []; for (;;) a.push(new Uint8Array(1 << 20))").await;
    assert!(error.message.contains("memory"), "{error:?}");
}

#[tokio::test]
async fn recursion_is_limited() {
    let error = error("const f = () => f() + 1; f()").await;
    assert!(error.message.contains("stack"), "{error:?}");
}

async fn canceled(source: &str) -> Outcome {
    let connection = join(Arc::default()).await;
    let script = Script {
        name: "test".to_owned(),
        source: source.to_owned(),
        indent: 0,
    };
    let (cancel, outcome) = run(script, connection.main(), Limits::default());
    let outcome = tokio::spawn(outcome);
    cancel.cancel();
    outcome.await.unwrap()
}

#[tokio::test]
async fn an_endless_computation_can_be_stopped() {
    assert!(matches!(canceled("for (;;);").await, Outcome::Canceled));
}

#[tokio::test]
async fn an_endless_wait_can_be_stopped() {
    assert!(matches!(
        canceled("await itx.never()").await,
        Outcome::Canceled
    ));
}

#[tokio::test]
async fn a_catch_does_not_keep_a_stopped_script_going() {
    let source = "for (;;) { try { for (;;); } catch {} }";
    assert!(matches!(canceled(source).await, Outcome::Canceled));
}

#[tokio::test]
async fn an_error_that_nobody_caught_is_told() {
    for (source, told) in [
        ("(async () => { throw new Error('lost') })()", Some("lost")),
        (
            "const p = Promise.reject(new Error('x')); await null; try { await p } catch {}",
            None,
        ),
        ("await itx.fail().catch(() => {})", None),
        ("try { await itx.fail() } catch {}", None),
        (
            "return itx.apply(() => { throw new Error('x') }).catch(() => 1)",
            None,
        ),
    ] {
        let outcome = outcome_with(Arc::default(), source).await;
        let Outcome::Value { uncaught, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(uncaught.as_deref(), told, "{source}");
    }
}
