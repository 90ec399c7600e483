//! Streams, both ways.

use super::*;
use serde_json::json;

#[tokio::test]
async fn a_received_stream_can_be_looped_over() {
    let source = "const out = []; for await (const chunk of await itx.count(5)) out.push(...chunk); return out";
    assert_eq!(value(source).await, json!([0, 1, 2, 3, 4]));
}

#[tokio::test]
async fn it_needs_no_await_of_its_own() {
    let source =
        "let n = 0; for await (const chunk of itx.count(1000)) n += chunk.length; return n";
    assert_eq!(value(source).await, json!(1000));
}

#[tokio::test]
async fn it_can_be_read_by_a_reader_and_canceled() {
    let source =
        "const reader = (await itx.count(100000)).getReader(); const first = await reader.read();
      await reader.cancel('enough'); return [first.done, [...first.value]]";
    assert_eq!(value(source).await, json!([false, [0]]));
}

#[tokio::test]
async fn a_generator_can_be_sent() {
    let source = "async function* parts() { yield new Uint8Array([1, 2]); yield 'a' }
      return [...await itx.collect(parts())]";
    assert_eq!(value(source).await, json!([1, 2, 97]));
}

#[tokio::test]
async fn a_source_of_ones_own_can_be_sent() {
    let source = "let n = 0;
      const stream = new ReadableStream({ pull(c) { n < 3 ? c.enqueue(new Uint8Array([n++])) : c.close() } });
      return [...await itx.collect(stream)]";
    assert_eq!(value(source).await, json!([0, 1, 2]));
}

#[tokio::test]
async fn a_received_stream_can_be_sent_on() {
    let source = "return [...await itx.collect(await itx.count(3))]";
    assert_eq!(value(source).await, json!([0, 1, 2]));
}

#[tokio::test]
async fn an_error_of_the_source_reaches_the_receiver() {
    let source = "async function* parts() { yield 'a'; throw new Error('broken') } await itx.collect(parts())";
    assert_eq!(error(source).await.message, "broken");
}
