//! `hutch key`.

use crate::{
    connect,
    failure::Failure,
    output::{self, table},
    settings::Settings,
};
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;

/// Options of `hutch key`.
#[derive(Debug, Args)]
#[command(after_help = "\
Only the admin key, which the server's first start made, can make, list and revoke keys.

Examples:
  hutch key create --expires 30d
  hutch key list
  hutch key revoke 0123456789ab")]
pub struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Make an access key and print its token, this once
    #[command(after_help = "\
With -p the key opens that project alone, else every project. The token goes into HUTCH_TOKEN or
--token; the server keeps only a hash of it.

Examples:
  hutch key create
  hutch key create -p demo --expires 30d --label laptop
  HUTCH_TOKEN=$(hutch key create -p demo) hutch sandbox list -p demo")]
    Create {
        /// How long it is valid, such as 12h or 30d [default: for ever]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// What to call it
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
    },
    /// List the access keys, without their tokens
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  hutch key list\n  hutch key list --json"
    )]
    List,
    /// Take an access key back and close its connections
    #[command(
        visible_alias = "rm",
        after_help = "Examples:\n  hutch key revoke 0123456789ab"
    )]
    Revoke {
        /// Id of the key, as the list shows it
        id: String,
    },
}

/// Runs `hutch key …`.
pub async fn run(args: KeyArgs, settings: &Settings) -> Result<u8, Failure> {
    let client = connect::client(settings).await?;
    match args.command {
        KeyCommand::Create { expires, label } => {
            let new = client
                .create_key(&hutch_client::NewKeyOptions {
                    project: settings.project_given.then(|| settings.project.clone()),
                    expires_in: expires,
                    label,
                })
                .await?;
            let token = new.token.expose_secret();
            if settings.json {
                let mut answer = json!(new.key);
                answer["token"] = json!(token);
                output::json(&answer)?;
            } else {
                output::line(token)?;
                output::note(&format!(
                    "key {}: keep the token, it cannot be shown again",
                    new.key.id
                ));
            }
        }
        KeyCommand::List => {
            let keys = client.list_keys().await?;
            if settings.json {
                output::json(&keys)?;
            } else {
                output::line(&listing(keys))?;
            }
        }
        KeyCommand::Revoke { id } => {
            client.revoke_key(&id).await?;
            if settings.json {
                output::json(&json!({"revoked": id}))?;
            } else {
                output::line(&format!("key {id} revoked"))?;
            }
        }
    }
    Ok(0)
}

fn listing(keys: Vec<hutch_client::Key>) -> String {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let rows: Vec<_> = keys
        .into_iter()
        .map(|key| {
            let state = match (&key.revoked_at, key.valid) {
                (Some(_), _) => "revoked",
                (None, true) => "valid",
                (None, false) => "expired",
            };
            [
                key.id,
                state.to_owned(),
                key.project.unwrap_or_else(|| "all".to_owned()),
                dash(key.expires_at),
                dash(key.last_used_at),
                dash(key.label),
            ]
        })
        .collect();
    table::render(
        ["KEY", "STATE", "PROJECT", "EXPIRES", "LAST USED", "LABEL"],
        &rows,
        |_, _, cell| cell,
    )
}
