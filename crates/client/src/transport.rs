//! From an address to a WebSocket.

use crate::ClientError;
use capnweb::{Limits, Transport, ws};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::http::Uri;

/// Longest wait for the TCP connection and the handshake together.
const CONNECT: Duration = Duration::from_secs(10);

/// Where a server is: what to dial and the URL of its endpoint.
#[derive(Debug, PartialEq)]
pub(crate) struct Address {
    host: String,
    port: u16,
    endpoint: String,
}

impl Address {
    /// Reads `http://HOST:PORT[/PREFIX]`; the scheme may also be `ws`.
    pub(crate) fn parse(url: &str) -> Result<Self, ClientError> {
        let wrong = |why: &str| {
            ClientError::Address(format!(
                "server address `{url}` {why}; give it as http://HOST:PORT, such as http://127.0.0.1:7070"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
        match uri.scheme_str() {
            Some("http" | "ws") => {}
            Some("https" | "wss") => {
                return Err(ClientError::Address(format!(
                    "server address `{url}`: TLS is not supported yet; reach the server through a tunnel (ssh -L 7070:127.0.0.1:7070 HOST) and give http://127.0.0.1:7070"
                )));
            }
            _ => return Err(wrong("has no http:// in front")),
        }
        if uri.query().is_some() {
            return Err(wrong("has a query"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("holds credentials"));
        }
        let host = authority.host().to_owned();
        if host.is_empty() {
            return Err(wrong("names no host"));
        }
        Ok(Self {
            port: authority.port_u16().unwrap_or(80),
            endpoint: format!("ws://{authority}{}/api", uri.path().trim_end_matches('/')),
            host: host.trim_matches(['[', ']']).to_owned(),
        })
    }

    /// Connects and shakes hands.
    pub(crate) async fn connect(&self, limits: &Limits) -> Result<impl Transport, ClientError> {
        match tokio::time::timeout(CONNECT, self.open(limits)).await {
            Ok(result) => result.map_err(|reason| self.unreachable(reason)),
            Err(_) => Err(self.unreachable(format!("no answer within {} s", CONNECT.as_secs()))),
        }
    }

    async fn open(&self, limits: &Limits) -> Result<impl Transport, String> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| error.to_string())?;
        // A call is a small frame that waits for its answer.
        tcp.set_nodelay(true).map_err(|error| error.to_string())?;
        ws::client(tcp, &self.endpoint, limits)
            .await
            .map_err(|error| error.to_string())
    }

    fn unreachable(&self, reason: String) -> ClientError {
        ClientError::Connect {
            url: self.endpoint.clone(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn endpoint(url: &str) -> String {
        Address::parse(url).unwrap().endpoint
    }

    #[test]
    fn the_endpoint_is_below_the_address() {
        assert_eq!(endpoint("http://127.0.0.1:7070"), "ws://127.0.0.1:7070/api");
        assert_eq!(
            endpoint("http://127.0.0.1:7070/"),
            "ws://127.0.0.1:7070/api"
        );
        assert_eq!(endpoint("ws://h/hutch/"), "ws://h/hutch/api");
    }

    #[test]
    fn ipv6_hosts_lose_their_brackets_only_for_dialling() {
        let address = Address::parse("http://[::1]:7070").unwrap();
        assert_eq!(address.host, "::1");
        assert_eq!(address.endpoint, "ws://[::1]:7070/api");
    }

    #[test]
    fn tls_is_refused_with_the_way_out() {
        let error = Address::parse("https://h").unwrap_err();
        assert_eq!(error.code(), "INVALID_URL");
        assert!(error.to_string().contains("not supported yet"));
    }

    #[test]
    fn other_addresses_are_refused() {
        for url in [
            "",
            "127.0.0.1:7070",
            "/x",
            "ftp://h",
            "http://",
            "http://u:p@h",
            "http://h?q",
        ] {
            assert!(Address::parse(url).is_err(), "{url}");
        }
    }
}
