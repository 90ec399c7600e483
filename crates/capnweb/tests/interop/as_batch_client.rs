//! Our client's batches on the official server.

use capnweb::Limits;

use crate::as_client::start;
use crate::support::within;

#[tokio::test]
async fn the_official_servers_answer_our_batches() {
    for library in ["capnweb", "capnweb-08"] {
        let (_node, port) = start(library).await;
        let (connection, batch) = capnweb::batch::BatchClient::start(Limits::default());
        let api = connection.main();
        let counter = api.call("counter", vec![10.into()]).stub();
        let add = |number: i32| {
            counter
                .call("add", vec![number.into()])
                .stub()
                .into_promise()
        };
        let sum = api.call("sum", vec![add(1), add(2)]).ask();
        let mapped = api.call("list", vec![3.into()]).stub().map("", |map| {
            map.call(&api, "sum", vec![map.input().into_promise(), 1.into()])
                .into_promise()
        });
        let mapped = mapped.ask();
        let failed = api.call("fail", vec![]);
        let run = batch.run(|body| crate::http::post(port, body));
        let (failed, _) = within(async { tokio::join!(failed.into_future(), run) }).await;
        let failed = failed.unwrap_err();
        assert_eq!(failed.code(), Some("FILE_NOT_FOUND"));
        assert!(failed.is_from_peer() && !failed.is_end_of_session());
        assert_eq!(within(sum).await.unwrap().as_f64(), Some(24.0));
        let mapped = within(mapped).await.unwrap().to_json().unwrap();
        assert_eq!(mapped, serde_json::json!([1, 2, 3]));
    }
}
