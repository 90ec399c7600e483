#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use tempfile::TempDir;

async fn keys(dir: &TempDir) -> Keys {
    let store = Store::open(dir.path()).unwrap();
    let admin = AdminKey::load_or_make(dir.path()).unwrap();
    Keys::open(admin, store).await.unwrap()
}

fn any() -> NewKey {
    NewKey {
        project: None,
        label: None,
        lifetime: None,
    }
}

#[tokio::test]
async fn a_key_opens_what_it_was_made_for_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir).await;
    let project = ProjectId::random();
    let made = keys
        .create(NewKey {
            project: Some(project.clone()),
            ..any()
        })
        .await
        .unwrap();
    let principal = keys.authenticate(&made.token).unwrap();
    assert!(principal.opens(&project));
    assert!(!principal.opens(&ProjectId::random()));
    assert!(!principal.is_admin());
    keys.revoke(&made.description.id).await.unwrap();
    assert_eq!(principal.ended().await, Ended::Revoked);
    let refused = keys.authenticate(&made.token).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unauthenticated);
    assert!(refused.message.contains("revoked"), "{refused}");
}

#[tokio::test]
async fn keys_outlive_the_server_and_their_secret_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let first = keys(&dir).await;
    let kept = first.create(any()).await.unwrap();
    let revoked = first.create(any()).await.unwrap();
    first.revoke(&revoked.description.id).await.unwrap();
    first
        .used(&KeyName::Stored(kept.description.id.clone()))
        .await;
    first.store.clone().close().await;
    drop(first);
    use secrecy::ExposeSecret;
    let secret = kept
        .token
        .expose_secret()
        .split('_')
        .nth(3)
        .unwrap()
        .to_owned();
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            let content = std::fs::read(entry.path()).unwrap();
            let found = content
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{:?}", entry.path());
        }
    }
    let next = keys(&dir).await;
    assert!(next.authenticate(&kept.token).is_ok());
    assert!(next.authenticate(&revoked.token).is_err());
    let listed = next.list();
    assert_eq!(listed.len(), 2);
    let kept = listed
        .iter()
        .find(|key| key.id == kept.description.id)
        .unwrap();
    assert!(kept.last_used_at.is_some() && kept.valid);
}

#[tokio::test]
async fn an_expired_key_opens_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir).await;
    let made = keys
        .create(NewKey {
            lifetime: Some(Duration::ZERO),
            ..any()
        })
        .await
        .unwrap();
    let refused = keys.authenticate(&made.token).unwrap_err();
    assert!(refused.message.contains("expired"), "{refused}");
    assert!(!keys.list()[0].valid);
}

#[tokio::test]
async fn a_use_that_is_noted_late_does_not_undo_a_revocation() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir).await;
    let made = keys.create(any()).await.unwrap();
    let id = made.description.id;
    let mut before = keys.lock().get(&id).unwrap().record.clone();
    before.last_used_at = Some(Timestamp::now());
    keys.revoke(&id).await.unwrap();
    keys.write_use(before).await.unwrap();
    let stored = keys
        .store
        .record(&RecordId::deployment(KIND, id.as_str()))
        .await;
    assert!(stored.unwrap().unwrap().json["revokedAt"].is_string());
}
