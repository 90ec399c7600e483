//! Which requests may come in at all.
//!
//! A web page in the user's own browser can reach this port. Its requests carry
//! an `Origin`, and a name that it has rebound to this address carries that name
//! as `Host`. Both are refused.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::Response;

/// Checks `Host` and `Origin`.
pub(super) fn check(headers: &HeaderMap, allowed_hosts: &[String]) -> Result<(), Box<Response>> {
    let host = single(headers, &header::HOST)
        .ok_or_else(|| Box::new(plain(400, "the request needs exactly one Host header\n")))?;
    if !is_ours(host_name(host), allowed_hosts) {
        return Err(Box::new(plain(
            403,
            "this Host is not served here; use the server's IP address or localhost\n",
        )));
    }
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = single(headers, &header::ORIGIN).unwrap_or_default();
    let place = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    if place.is_some_and(|place| place.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(Box::new(plain(403, "this Origin may not use hutch\n")))
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

/// The name in `name:port` or `[address]:port`.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    host.split(':').next().unwrap_or_default()
}

/// An IP address cannot be rebound; a name must be known.
fn is_ours(name: &str, allowed_hosts: &[String]) -> bool {
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed_hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// A short answer in text.
pub(super) fn plain(status: u16, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        map
    }

    fn status(pairs: &[(&str, &str)]) -> u16 {
        let allowed = ["hutch.test".to_owned()];
        check(&headers(pairs), &allowed)
            .err()
            .map_or(200, |response| response.status().as_u16())
    }

    #[test]
    fn addresses_localhost_and_known_names_are_ours() {
        for host in [
            "127.0.0.1:7070",
            "localhost:7070",
            "LOCALHOST",
            "[::1]:7070",
            "10.0.0.5",
            "hutch.test:1",
        ] {
            assert_eq!(status(&[("host", host)]), 200, "{host}");
        }
    }

    #[test]
    fn rebound_names_and_foreign_pages_are_refused() {
        assert_eq!(status(&[("host", "evil.test:7070")]), 403);
        assert_eq!(status(&[("host", "localhost.evil.test")]), 403);
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "evil.test")]), 400);
        let host = ("host", "localhost:7070");
        assert_eq!(status(&[host, ("origin", "http://localhost:7070")]), 200);
        for origin in [
            "http://evil.test",
            "null",
            "http://localhost:8080",
            "http://localhost:7070.evil.test",
            "",
        ] {
            assert_eq!(status(&[host, ("origin", origin)]), 403, "{origin}");
        }
        let twice = [
            host,
            ("origin", "http://localhost:7070"),
            ("origin", "http://evil.test"),
        ];
        assert_eq!(status(&twice), 403);
    }
}
