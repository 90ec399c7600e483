//! From settings to a connection.

use crate::{failure::Failure, settings::Settings};
use hutch_client::{Client, Project};

/// Connects to the server that the settings name.
pub async fn client(settings: &Settings) -> Result<Client, Failure> {
    Ok(Client::connect(&settings.url, settings.token()?).await?)
}

/// Connects and addresses the project that the settings name.
pub async fn project(settings: &Settings) -> Result<Project, Failure> {
    Ok(client(settings).await?.project(&settings.project))
}

/// The path of a sandbox that was given as a bare name or a path. The server
/// judges whether it is a good one.
pub fn sandbox_path(name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/sandboxes/{name}")
    }
}

/// The bare name of a sandbox's path.
pub fn sandbox_name(path: &str) -> &str {
    path.strip_prefix("/sandboxes/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_mean_the_same_sandbox() {
        assert_eq!(sandbox_path("main"), "/sandboxes/main");
        assert_eq!(sandbox_path("/sandboxes/main"), "/sandboxes/main");
        assert_eq!(sandbox_name("/sandboxes/main"), "main");
    }

    #[test]
    fn a_foreign_path_reaches_the_server_unchanged() {
        assert_eq!(sandbox_path("/secrets/a"), "/secrets/a");
    }
}
