//! Following a stream over the ends of connections.

use super::read::text;
use crate::{
    failure::Failure,
    output::{self, follow::Lines},
    signals::Signals,
};
use hutch_client::{ClientError, EventQuery, EventStream, Tail};
use std::time::{Duration, Instant};

/// The first wait before connecting again; each next is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a server may be away.
const AWAY: Duration = Duration::from_secs(600);

/// Shows what comes after the query's offset, first what is there, then what is
/// appended, until a signal. A connection that ends is made again, and the stream
/// goes on after the last event shown.
pub async fn follow(
    stream: &EventStream,
    mut query: EventQuery,
    json: bool,
) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let lines = Lines::start();
    let mut tail = tokio::select! {
        tail = stream.subscribe(&query) => tail?,
        signal = signals.next() => return Ok(signal.exit_code()),
    };
    loop {
        let step = async {
            let events = match tail.next().await {
                Ok(events) => events,
                Err(error) if passes(&error) => {
                    query.after_offset = tail.seen();
                    tail = again(stream, &query).await?;
                    return Ok(true);
                }
                Err(error) => return Err(Failure::from(error)),
            };
            for event in &events {
                if !lines.add(text(event, json)?).await {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        tokio::select! {
            goes_on = step => if !goes_on? {
                return lines.finish().await.map(|()| 0);
            },
            signal = signals.next() => return Ok(signal.exit_code()),
        }
    }
}

/// Whether the same call may succeed later, on another connection.
fn passes(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Interrupted { .. } | ClientError::Connect { .. }
    )
}

async fn again(stream: &EventStream, query: &EventQuery) -> Result<Tail, Failure> {
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut told = false;
    loop {
        match stream.subscribe(query).await {
            Ok(tail) => return Ok(tail),
            Err(error) if passes(&error) && begun.elapsed() < AWAY => {
                if !std::mem::replace(&mut told, true) {
                    output::note(&format!("note: {error}; trying again"));
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
