//! A peer that sends any frames at all: the session ends or goes on, within its limits.
//! The frames are the lines of the input.
#![no_main]

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use capnweb::{CallFuture, Frame, Limits, Path, Session, Target, TransportError, Value};
use futures_util::{Sink, Stream};
use libfuzzer_sys::fuzz_target;

/// Delivers one line at a time, lets the session work in between, then hangs up.
struct Peer {
    frames: std::vec::IntoIter<String>,
    rests: u32,
}

impl Stream for Peer {
    type Item = Result<Frame, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rests += 1;
        if self.rests % 4 != 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let frame = self.frames.next();
        Poll::Ready(frame.map(|text| Ok(Frame::Text(text.into()))))
    }
}

impl Sink<Frame> for Peer {
    type Error = TransportError;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, _: Frame) -> Result<(), Self::Error> {
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

/// Answers each call with its arguments, so that every kind of value goes both ways.
struct Echo;

impl Target for Echo {
    fn call(self: Arc<Self>, _: Path, arguments: Vec<Value>) -> CallFuture {
        Box::pin(async move { Ok(Value::Array(arguments)) })
    }
}

fuzz_target!(|text: &str| {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
    else {
        return;
    };
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let peer = Peer {
        frames: lines.into_iter(),
        rests: 0,
    };
    runtime.block_on(async {
        let (connection, driver) = Session::start(peer, Some(Arc::new(Echo)), Limits::default());
        driver.await;
        drop(connection);
    });
});
