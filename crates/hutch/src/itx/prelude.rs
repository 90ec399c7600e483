//! The JavaScript half, joined into one closed function, so that scripts see
//! only what it gives them.

const PARTS: &[&str] = &[
    include_str!("prelude/values.js"),
    include_str!("prelude/remote.js"),
    include_str!("prelude/streams.js"),
    include_str!("prelude/timers.js"),
    include_str!("prelude/console.js"),
    include_str!("prelude/text.js"),
    include_str!("prelude/main.js"),
];

/// An expression: a function of the host object that sets the globals up and
/// answers the entry points.
pub fn source() -> String {
    format!("(function (host) {{\n{}\n}})", PARTS.join("\n"))
}
