//! A sandbox from create to destroy: `cargo run -p hutch-client --example tour`.
//!
//! Needs a server. Its address is in `HUTCH_URL` (default `http://127.0.0.1:7070`),
//! its token in `HUTCH_TOKEN`.

use hutch_client::{
    Client, ClientError, CreateOptions, EventQuery, ExecOptions, Program, SleepAfter, SpawnOptions,
};
use std::error::Error;
use std::io::Write;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("HUTCH_URL").unwrap_or("http://127.0.0.1:7070".to_owned());
    let token = std::env::var("HUTCH_TOKEN")?;
    let client = Client::connect(&url, token.into()).await?;
    let project = client.project("default");
    let sandbox = project.sandbox("/sandboxes/tour");
    let mut out = std::io::stdout();

    sandbox
        .create(&CreateOptions {
            instance_type: Some("lite".to_owned()),
            sleep_after: Some(SleepAfter::Text("5m".to_owned())),
            ..CreateOptions::default()
        })
        .await?;

    // The first command boots it. A code other than 0 is an answer, not an error.
    let options = ExecOptions {
        stdin: Some("3\n1\n2\n".to_owned()),
        timeout: Some(Duration::from_secs(60)),
        ..ExecOptions::default()
    };
    let sorted = sandbox.exec("sort | tee sorted", &options).await?;
    writeln!(
        out,
        "sorted: {:?}, exit code {}",
        sorted.stdout, sorted.exit_code
    )?;

    // Output as it comes, as exact bytes.
    let words = ["seq", "2"].map(str::to_owned).to_vec();
    let mut program = sandbox
        .spawn(SpawnOptions::new(Program::Argv(words)))
        .await?;
    while let Some(chunk) = program.stdout.next().await? {
        out.write_all(&chunk)?;
    }
    writeln!(
        out,
        "seq ended with {}",
        program.exit.wait().await?.exit_code
    )?;

    // Work survives sleep; the next call wakes it.
    sandbox.sleep().await?;
    let kept = sandbox.exec("cat sorted", &ExecOptions::default()).await?;
    writeln!(out, "after sleep: {:?}", kept.stdout)?;

    // All that happened to it is on the stream of its path.
    let stream = project.stream(sandbox.path());
    for event in stream.get_events(&EventQuery::default()).await? {
        writeln!(out, "{:>3} {}", event.offset, event.event_type)?;
    }

    // An error has a code, and says of a lost connection whether the call may have run.
    sandbox.destroy().await?;
    match sandbox.exec("true", &ExecOptions::default()).await {
        Err(ClientError::Interrupted { admitted, .. }) => {
            writeln!(out, "cut off; it may have run: {admitted:?}")?;
        }
        Err(error) => writeln!(out, "{}: {error}", error.code())?,
        Ok(_) => writeln!(out, "a destroyed sandbox ran a command")?,
    }
    Ok(())
}
