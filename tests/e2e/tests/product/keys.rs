//! Keys: for one project or all, shown once, revoked at once.

use hutch_e2e::{Api, Handle, Hutch, string};
use serde_json::json;

/// Connects with a token of project `name`.
async fn of(hutch: &Hutch, token: &str) -> Api {
    Api::connect(hutch.url(), token).await
}

#[tokio::test]
async fn a_key_of_one_project_sees_no_other() {
    let hutch = Hutch::start();
    let admin = hutch.api().await;
    let session = Handle(admin.session.clone());
    session
        .call("projects.create", &[json!({"slug": "blue"})])
        .await
        .unwrap();
    let options = json!({"project": "default", "label": "ci", "expiresIn": "30d"});
    let made = session.json("keys.create", &[options]).await;
    let token = string(&made["token"]);
    assert!(token.starts_with("hutch_key_"), "{token}");

    let api = of(&hutch, &token).await;
    let narrow = Handle(api.session.clone());
    assert_eq!(
        api.sandbox("a").refusal("describe", &[]).await.0,
        "SANDBOX_NOT_FOUND"
    );
    let projects = narrow.json("projects.list", &[]).await;
    assert_eq!(projects.as_array().unwrap().len(), 1);
    assert_eq!(projects[0]["slug"], "default");
    let (code, hidden) = narrow.refusal("projects.get", &[json!("blue")]).await;
    let (_, absent) = narrow.refusal("projects.get", &[json!("blux")]).await;
    assert_eq!(code, "PROJECT_NOT_FOUND");
    assert_eq!(hidden.message.replace("blue", "blux"), absent.message);
    for (method, argument) in [
        ("projects.create", json!({"slug": "red"})),
        ("keys.create", json!({})),
        ("keys.list", json!(null)),
        ("keys.revoke", made["id"].clone()),
    ] {
        assert_eq!(
            narrow.refusal(method, &[argument]).await.0,
            "FORBIDDEN",
            "{method}"
        );
    }
    let listed = session.json("keys.list", &[]).await;
    assert_eq!(listed[0]["label"], "ci");
    assert_eq!(listed[0]["valid"], true);
    assert!(listed[0].get("token").is_none() && listed[0].get("hash").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_ends_its_connections_and_their_calls() {
    let hutch = Hutch::start();
    let admin = hutch.api().await;
    let session = Handle(admin.session.clone());
    let made = session.json("keys.create", &[]).await;
    let token = string(&made["token"]);
    let api = of(&hutch, &token).await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.exec("true").await;
    let follower = sandbox.clone();
    let open = tokio::spawn(async move { follower.call("exec", &[json!("sleep 600")]).await });
    session
        .call("keys.revoke", &[made["id"].clone()])
        .await
        .unwrap();
    let ended = open.await.unwrap().unwrap_err();
    assert!(ended.message.contains("revoked"), "{}", ended.message);
    api.connection.closed().await;
    let again = of(&hutch, &token).await;
    let refused = Handle(again.session.clone()).refusal("whoami", &[]).await;
    assert_eq!(refused.0, "UNAUTHENTICATED");
    // What it started ended with it; the admin's own connection goes on.
    let sandbox = admin.sandbox("main");
    assert_eq!(sandbox.sh("pgrep -xc sleep").await.1, "0\n");
}

#[tokio::test]
async fn a_connection_belongs_to_one_key() {
    let hutch = Hutch::start();
    let admin = hutch.api().await;
    let made = Handle(admin.session.clone()).json("keys.create", &[]).await;
    let stranger = Api::stranger(hutch.url()).await;
    let main = Handle(stranger.main());
    let bearer = |token: &str| json!({"type": "bearer", "token": token});
    main.call("authenticate", &[bearer(&hutch.token())])
        .await
        .unwrap();
    let other = main
        .refusal("authenticate", &[bearer(&string(&made["token"]))])
        .await;
    assert_eq!(other.0, "FORBIDDEN");
}
