//! The Cap'n Web RPC wire over WebSocket, both roles.
//!
//! A [`Session`] joins two peers. Each may offer a main [`Target`]; both call
//! each other's through [`Stub`]s. Calls can be made on results that have not
//! arrived yet (pipelining), functions and objects travel by reference, byte
//! and value streams travel with back-pressure.
//!
//! The wire is the one of npm `capnweb`. This crate reads every form up to version
//! 0.12 and emits only those that version 0.8 reads, unless the [`Dialect`] says
//! that the peer is newer. A session is a WebSocket or, by [`batch`], one HTTP
//! request. The peer is taken to be hostile: see [`Limits`] and [`Budget`].
#![forbid(unsafe_code)]

pub mod batch;
mod bigint;
mod budget;
pub mod codec;
pub mod codes;
mod deferred;
mod dispatch;
mod error;
mod fetch;
mod json;
mod limits;
mod lock;
mod map;
mod meter;
mod object;
mod outcome;
mod path;
mod pending;
mod promises;
mod remains;
mod session;
mod stream;
mod stub;
mod target;
mod task;
mod transport;
mod typed_array;
mod value;
pub mod ws;

pub use bigint::{BigInt, InvalidBigInt};
pub use budget::Budget;
pub use error::ErrorValue;
pub use fetch::{Blob, Request, Response};
pub use json::{Mismatch, NotPlain};
pub use limits::{Dialect, Limits};
pub use map::MapBuilder;
pub use object::Object;
pub use path::{IntoPath, Key, Path, display_path};
pub use pending::Pending;
pub use session::{CloseReason, Connection, Session, Stats, WeakConnection};
pub use stream::{Canceled, ReadableStream, StreamWriter, WritableStream};
pub use stub::Stub;
pub use target::{CallFuture, Scoped, Target, not_a_function};
pub use transport::{Frame, Text, Transport, TransportError};
pub use typed_array::{ArrayKind, TypedArray};
pub use value::Value;
