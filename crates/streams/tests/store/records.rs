//! Records beside the events.

use hutch_protocol::ProjectId;
use hutch_streams::{Append, Expect, RecordId, Scope, StoreError, Transaction};
use serde_json::json;

use crate::fixture::{Fixture, event};

#[tokio::test]
async fn a_record_is_written_read_replaced_and_deleted() {
    let f = Fixture::new();
    let id = RecordId::new("sandbox", &f.project, "/sandboxes/a");
    let write = |n: u32, expect| Transaction::new().write(id.clone(), n, json!({"n": n}), expect);
    let made = f
        .store
        .commit(write(1, Expect::Absent))
        .await
        .unwrap()
        .records
        .remove(0);
    assert_eq!(f.store.record(&id).await.unwrap().unwrap(), made);
    assert_eq!((made.version, &made.json), (1, &json!({"n": 1})));

    let next = f
        .store
        .commit(write(2, Expect::Revision(made.revision)))
        .await
        .unwrap()
        .records
        .remove(0);
    assert!(next.revision > made.revision);
    for stale in [Expect::Absent, Expect::Revision(made.revision)] {
        let error = f.store.commit(write(3, stale)).await.unwrap_err();
        let StoreError::RecordConflict { found, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(found, Some(next.revision));
    }

    let delete = |expect| Transaction::new().delete(id.clone(), expect);
    assert!(
        f.store
            .commit(delete(Expect::Revision(made.revision)))
            .await
            .is_err()
    );
    f.store
        .commit(delete(Expect::Revision(next.revision)))
        .await
        .unwrap();
    assert_eq!(f.store.record(&id).await.unwrap(), None);
    f.store.commit(delete(Expect::Any)).await.unwrap();

    let remade = f
        .store
        .commit(write(1, Expect::Absent))
        .await
        .unwrap()
        .records
        .remove(0);
    assert!(
        remade.revision > next.revision,
        "an old revision would match again"
    );
}

#[tokio::test]
async fn a_record_and_its_event_stand_or_fall_together() {
    let f = Fixture::new();
    let id = RecordId::new("sandbox", &f.project, "a");
    let both = |expect| {
        let append = Append::one(
            &f.project,
            &"/sandboxes/a".parse().unwrap(),
            event("created"),
        );
        Transaction::new()
            .append(append)
            .write(id.clone(), 1, json!({}), expect)
    };
    f.store.commit(both(Expect::Absent)).await.unwrap();
    f.store.commit(both(Expect::Absent)).await.unwrap_err();
    assert_eq!(f.types("/sandboxes/a").await, ["created"]);

    let refused = Transaction::new()
        .append(Append::one(
            &f.project,
            &"/x".parse().unwrap(),
            event("a").expect_offset(9),
        ))
        .delete(id.clone(), Expect::Any);
    f.store.commit(refused).await.unwrap_err();
    assert!(f.store.record(&id).await.unwrap().is_some());
}

#[tokio::test]
async fn one_of_racing_writers_wins_a_revision() {
    let f = Fixture::new();
    let id = RecordId::new("sandbox", &f.project, "a");
    let write = |expect| Transaction::new().write(id.clone(), 1, json!({}), expect);
    let first = f
        .store
        .commit(write(Expect::Any))
        .await
        .unwrap()
        .records
        .remove(0);
    let racers = (0..20).map(|_| f.store.commit(write(Expect::Revision(first.revision))));
    let all = futures_util::future::join_all(racers).await;
    assert_eq!(all.iter().filter(|result| result.is_ok()).count(), 1);
}

#[tokio::test]
async fn records_are_listed_by_kind_and_scope() {
    let f = Fixture::new();
    let other = ProjectId::random();
    let mut transaction = Transaction::new();
    for n in 0..240 {
        let id = RecordId::new("sandbox", &f.project, format!("{n:04}"));
        transaction = transaction.write(id, 1, json!(n), Expect::Absent);
    }
    f.store.commit(transaction).await.unwrap();
    let mut transaction = Transaction::new();
    for n in 240..300 {
        let id = RecordId::new("sandbox", &f.project, format!("{n:04}"));
        transaction = transaction.write(id, 1, json!(n), Expect::Absent);
    }
    transaction = transaction
        .write(
            RecordId::new("sandbox", &other, "x"),
            1,
            json!("x"),
            Expect::Absent,
        )
        .write(
            RecordId::new("other", &other, "x"),
            1,
            json!("y"),
            Expect::Absent,
        )
        .write(
            RecordId::deployment("sandbox", "d"),
            1,
            json!("d"),
            Expect::Absent,
        );
    f.store.commit(transaction).await.unwrap();

    let mine = f
        .store
        .records("sandbox", Scope::Project(&f.project))
        .await
        .unwrap();
    let numbers: Vec<_> = mine
        .iter()
        .map(|record| record.json.as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
    assert_eq!(
        f.store
            .records("sandbox", Scope::Project(&other))
            .await
            .unwrap()
            .len(),
        1
    );
    let deployment = f.store.records("sandbox", Scope::Deployment).await.unwrap();
    assert_eq!(deployment.len(), 1);
    assert_eq!(deployment[0].id.project, None);
    assert_eq!(
        f.store.records("sandbox", Scope::All).await.unwrap().len(),
        302
    );
}
