//! The JavaScript of `hutch itx run`: an embedded engine on a thread of its own,
//! which talks to the server through `itx`.
//!
//! The prelude (`prelude/*.js`) is the JavaScript half: proxies, streams,
//! timers, console. The host half is here. Between them go numbers and tagged
//! JSON text, and nothing else.

mod engine;
mod functions;
mod host;
mod host_functions;
mod outcome;
mod prelude;
mod rejections;
mod settle;
mod streams;
mod text;
mod timers;
mod turns;
mod value;

#[cfg(test)]
mod tests;

pub use engine::{Limits, Script, run};
pub use outcome::{Outcome, ScriptError};
