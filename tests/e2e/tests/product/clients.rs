//! The clients that come with hutch, against a real server.

use std::process::Command;

use hutch_e2e::Hutch;

#[test]
fn the_typescript_types_are_those_of_the_server() {
    let sdk = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/typescript");
    assert!(
        sdk.join("node_modules/typescript").is_dir(),
        "run `npm ci` in sdk/typescript first"
    );
    let hutch = Hutch::start();
    let out = tempfile::tempdir_in(&sdk).unwrap();
    let compiled = Command::new("node")
        .current_dir(&sdk)
        .args(["node_modules/typescript/bin/tsc", "--outDir"])
        .arg(out.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&compiled.stdout);
    assert!(compiled.status.success(), "{text}");
    let mut node = Command::new("node");
    node.arg(out.path().join("test/product.js"))
        .env("HUTCH_URL", hutch.url())
        .env("HUTCH_TOKEN", hutch.token());
    let output = node.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
