//! What goes over the wire, to the byte.

use crate::start;

#[tokio::test]
async fn a_call_and_its_result() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["resolve",1,"world"]"#).await;
    peer.send(r#"["release",1,1]"#).await;
    peer.send(r#"["push",["pipeline",0,["nope"],[]]]"#).await;
    peer.send(r#"["pull",2]"#).await;
    peer.expect(r#"["reject",2,["error","TypeError","'nope' is not a function."]]"#)
        .await;
    assert_eq!(server.connection.stats().exports, 2);
}

#[tokio::test]
async fn a_result_stream_and_its_messages() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["read"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["pipe"]"#).await;
    peer.expect(r#"["resolve",1,["readable",1]]"#).await;
    peer.send(r#"["release",1,1]"#).await;
    peer.expect(r#"["stream",["pipeline",1,["write"],[["bytes","YWI"]]]]"#)
        .await;
    peer.send(r#"["resolve",2,["undefined"]]"#).await;
    peer.expect(r#"["stream",["pipeline",1,["close"],[]]]"#)
        .await;
    peer.send(r#"["resolve",3,["undefined"]]"#).await;
    peer.expect(r#"["release",1,1]"#).await;
    assert_eq!(
        (
            server.connection.stats().imports,
            server.connection.stats().exports
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn a_refused_write_cancels_and_releases_the_pipe() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["read"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["pipe"]"#).await;
    peer.expect(r#"["resolve",1,["readable",1]]"#).await;
    assert!(peer.next().await.starts_with(r#"["stream""#));
    peer.send(r#"["reject",2,["error","Error","no more"]]"#)
        .await;
    // The close may have been on its way.
    let mut next = peer.next().await;
    if next.starts_with(r#"["stream""#) {
        next = peer.next().await;
    }
    assert_eq!(next, r#"["release",1,1]"#);
}

#[tokio::test]
async fn an_argument_stream_and_its_acknowledgements() {
    let (server, mut peer) = start().await;
    peer.send(r#"["pipe"]"#).await;
    peer.send(r#"["stream",["pipeline",1,["write"],[["bytes","AQI"]]]]"#)
        .await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",3]"#).await;
    // Nobody has read the chunk: no acknowledgement yet.
    peer.expect(r#"["resolve",3,"world"]"#).await;
    assert!(server.connection.stats().stream_bytes > 0);
    peer.send(r#"["push",["pipeline",0,["drain"],[["readable",1]]]]"#)
        .await;
    peer.send(r#"["pull",4]"#).await;
    peer.expect(r#"["resolve",2,["undefined"]]"#).await;
    peer.send(r#"["stream",["pipeline",1,["close"],[]]]"#).await;
    peer.expect(r#"["resolve",5,["undefined"]]"#).await;
    peer.expect(r#"["resolve",4,2]"#).await;
    assert_eq!(server.connection.stats().stream_bytes, 0);
}

#[tokio::test]
async fn a_pipe_released_without_close_ends_with_an_error() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["pipe"]"#).await;
    peer.send(r#"["push",["pipeline",0,["drain"],[["readable",1]]]]"#)
        .await;
    peer.send(r#"["pull",2]"#).await;
    peer.send(r#"["release",1,1]"#).await;
    let message = peer.next().await;
    assert!(
        message.starts_with(
            r#"["reject",2,["error","Error","WritableStream RPC stub was disposed without calling close()""#
        ),
        "{message}"
    );
}

#[tokio::test]
async fn a_callback_is_called_and_released_with_its_count() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["call"],[["export",-1],["export",-1]]]]"#)
        .await;
    peer.expect(r#"["push",["pipeline",-1,[],[1]]]"#).await;
    peer.expect(r#"["pull",1]"#).await;
    peer.send(r#"["resolve",1,["undefined"]]"#).await;
    let mut left = vec![peer.next().await, peer.next().await];
    left.sort();
    assert_eq!(left, [r#"["release",-1,2]"#, r#"["release",1,1]"#]);
}

#[tokio::test]
async fn explicitly_undefined_options_count_as_absent() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["echo"],[{"encoding":["undefined"],"b":[[]],"__proto__":1,"toJSON":[["x"]]}]]]"#)
        .await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["resolve",1,{"encoding":["undefined"],"b":[[]]}]"#)
        .await;
}
