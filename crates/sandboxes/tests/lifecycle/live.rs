use std::time::Duration;

use hutch_protocol::{EnvPatch, ErrorCode, LiveMessage};
use hutch_sandboxes::Settings;
use serde_json::json;

use crate::world::{World, born, path};

#[tokio::test]
async fn followers_get_a_snapshot_and_then_patches_that_lead_to_the_state() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, _) = born(&world, &sandboxes, "a").await;
    let mut live = sandbox.follow().unwrap();
    let Some(LiveMessage::Snapshot { revision, state }) = live.next().await else {
        panic!("no snapshot");
    };
    assert_eq!((revision, &state["status"]), (1, &json!("created")));
    let (mut known, mut state) = (revision, state);
    // Two changes within the debounce are one patch.
    sandbox.admit().await.unwrap();
    let env = EnvPatch::from([("A".to_owned(), Some("1".to_owned()))]);
    sandbox.configure(Some(env), None, None).await.unwrap();
    sandbox.sleep().await.unwrap();
    sandbox.destroy().await.unwrap();
    while known < sandbox.projection().0 {
        let Some(LiveMessage::Patch { from, to, patch }) = live.next().await else {
            panic!("no patch");
        };
        assert_eq!(from, known);
        state = patch.apply(&state).unwrap();
        known = to;
    }
    let expected = serde_json::to_value(sandbox.projection().1).unwrap();
    assert_eq!(state, expected);
    assert_eq!(state["status"], "destroyed");
    assert_eq!(state["env"], json!({"A": "1"}));
    // Notes and samples are no changes.
    sandbox.destroy().await.unwrap();
    tokio::time::timeout(Duration::from_millis(300), live.next())
        .await
        .unwrap_err();
}

#[tokio::test]
async fn followers_have_a_limit_and_give_their_seat_back() {
    let world = World::new();
    let sandboxes = world.sandboxes_with(Settings {
        followers: 1,
        ..Settings::default()
    });
    let (sandbox, _) = born(&world, &sandboxes, "a").await;
    let first = sandbox.follow().unwrap();
    let refused = sandbox.follow().err().unwrap();
    assert_eq!(refused.code, ErrorCode::CapacityExceeded);
    drop(first);
    sandbox.follow().unwrap();
}

#[tokio::test]
async fn a_wait_for_an_offset_ends_when_it_is_folded_or_in_time() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, _) = born(&world, &sandboxes, "a").await;
    let long = Duration::from_secs(60);
    let waiting = sandbox.processed(2, long);
    let (offset, _) = tokio::join!(waiting, sandbox.admit());
    assert_eq!(offset.unwrap(), 2);
    let late = sandbox.processed(3, Duration::from_millis(20)).await;
    let late = late.unwrap_err();
    assert_eq!(late.code, ErrorCode::ServiceNotResponding);
    assert_eq!(late.details["offset"], 2);
    assert_eq!(world.types(&path("a")), ["created", "started"]);
}
