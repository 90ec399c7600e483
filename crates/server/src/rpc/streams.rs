//! One event stream, as clients see it.

use std::sync::Arc;
use std::time::Duration;

use capnweb::{CallFuture, Path, Stub, Target, Value};
use futures_util::FutureExt;
use hutch_protocol::{ApiError, ErrorCode, ProjectId, StreamPath, event};
use hutch_streams::{
    Append, Event, EventQuery, EventRef, EventTypes, NewEvent, Order, StreamKey, Subscribe,
    Transaction,
};
use serde::Deserialize;
use serde_json::json;

use super::subscription::Following;
use super::{World, answer, args, names, no_method, no_property, plain, run};

/// Prefixes of idempotency keys that only the server uses.
const SERVER_KEYS: [&str; 6] = [
    "child-stream-created:",
    "sandbox-create-requested:",
    "sandbox/",
    "stream/",
    "project/",
    "secret/",
];

/// Bytes of events in one answer: a frame holds them however they are written.
const PAGE_BYTES: usize = 8 << 20;

/// The longest that a caller may wait for an event.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// A stream at a path. Reads never make one.
pub(super) struct StreamObject {
    world: Arc<World>,
    key: StreamKey,
    project: ProjectId,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Query {
    after_offset: Option<u64>,
    before_offset: Option<u64>,
    event_types: EventTypes,
    limit: Option<f64>,
    order: Option<String>,
    // Accepted for clients that send it; this store has no such events.
    include_ephemeral: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Which {
    offset: Option<u64>,
    idempotency_key: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Wait {
    after_offset: Option<u64>,
    event_types: EventTypes,
    timeout_ms: Option<f64>,
}

impl StreamObject {
    pub(super) fn new(world: Arc<World>, project: ProjectId, path: StreamPath) -> Arc<Self> {
        let key = StreamKey::new(&project, &path);
        Arc::new(Self {
            world,
            key,
            project,
        })
    }

    /// `getEvents` answers all it was asked for or says that it cannot;
    /// `getEventPage` cuts where an answer would be too large, and says so.
    async fn events(&self, args: &[Value], paged: bool) -> Result<Value, ApiError> {
        let query: Query = args::options(args, 0, "getEvents")?;
        let _ = query.include_ephemeral;
        let limit = match query.limit {
            None => EventQuery::default().limit,
            // What is no positive integer is refused with the store's own words.
            Some(limit) if limit >= 1.0 && limit.fract() == 0.0 && limit <= 1e9 => limit as usize,
            Some(_) => 0,
        };
        let order = match query.order.as_deref() {
            None | Some("asc") => Order::Ascending,
            Some("desc") => Order::Descending,
            Some(other) => {
                return Err(args::invalid(format!(
                    "order is \"asc\" or \"desc\", got {other:?}"
                )));
            }
        };
        let query = EventQuery {
            after_offset: query.after_offset.unwrap_or(0),
            before_offset: query.before_offset,
            event_types: query.event_types,
            limit,
            order,
            max_bytes: Some(PAGE_BYTES),
        };
        let page = self.world.store.get_event_page(&self.key, query).await;
        let page = page.map_err(ApiError::from)?;
        if paged {
            return plain(&json!({
                "events": page.events,
                "streamMaxOffset": page.stream_max_offset,
                "more": page.more,
            }));
        }
        if page.more && page.events.len() < limit {
            let message = format!(
                "{limit} events of {} are more than one answer holds; ask getEventPage, or a limit of {}",
                self.key.path,
                page.events.len()
            );
            return Err(
                ApiError::new(ErrorCode::PayloadTooLarge, message).with("limit", page.events.len())
            );
        }
        plain(&page.events)
    }

    async fn event(&self, args: &[Value]) -> Result<Value, ApiError> {
        let which: Which = args::options(args, 0, "getEvent")?;
        let which = match (which.offset, which.idempotency_key) {
            (Some(offset), None) => EventRef::Offset(offset),
            (None, Some(key)) => EventRef::Key(key),
            _ => {
                return Err(args::invalid(
                    "use getEvent({offset}) or getEvent({idempotencyKey})",
                ));
            }
        };
        match self
            .world
            .store
            .get_event(&self.key, which)
            .await
            .map_err(ApiError::from)?
        {
            Some(event) => plain(&event),
            None => Ok(Value::Undefined),
        }
    }

    async fn head(&self) -> Result<Value, ApiError> {
        match self
            .world
            .store
            .head(&self.key)
            .await
            .map_err(ApiError::from)?
        {
            Some(head) => {
                plain(&json!({ "createdAt": head.created_at, "maxOffset": head.max_offset }))
            }
            None => Ok(Value::Null),
        }
    }

    async fn append(&self, args: Vec<Value>) -> Result<Value, ApiError> {
        if self.key.path.is_server_only() {
            return Err(ApiError::new(
                ErrorCode::Forbidden,
                format!(
                    "only the server appends to {}; use a path of your own, such as /notes",
                    self.key.path
                ),
            ));
        }
        let given: Vec<Value> = match args.as_slice() {
            [Value::Array(_)] => match args.into_iter().next() {
                Some(Value::Array(events)) => events,
                _ => Vec::new(),
            },
            _ => args,
        };
        let mut events = Vec::with_capacity(given.len().min(1024));
        for event in &given {
            events.push(client_event(event)?);
        }
        let append = Append::new(&self.project, &self.key.path, events);
        let outcome = self
            .world
            .store
            .commit(Transaction::new().append(append))
            .await
            .map_err(ApiError::from)?;
        let committed: Vec<&Event> = outcome.events().map(|committed| &committed.event).collect();
        plain(&committed)
    }

    async fn wait(&self, args: &[Value]) -> Result<Value, ApiError> {
        let wait: Wait = args::options(args, 0, "waitForEvent")?;
        let millis = wait.timeout_ms.unwrap_or(30_000.0);
        let timeout = Duration::try_from_secs_f64(millis / 1e3)
            .ok()
            .filter(|time| *time <= WAIT_MAX);
        let timeout =
            timeout.ok_or_else(|| args::invalid("timeoutMs must be between 0 and 3600000"))?;
        let request = Subscribe {
            event_types: wait.event_types,
            ..Subscribe::new(&self.project, &self.key.path).after(wait.after_offset.unwrap_or(0))
        };
        let event = self
            .world
            .store
            .wait_for_event(request, timeout)
            .await
            .map_err(ApiError::from)?;
        plain(&event)
    }

    /// `subscribe({processEventBatch, replayAfterOffset?, eventTypes?})`.
    fn subscribe(&self, args: Vec<Value>) -> Result<Value, ApiError> {
        let usage =
            || args::invalid("use subscribe({processEventBatch, replayAfterOffset?, eventTypes?})");
        let mut args = args.into_iter();
        let (function, options) = match args.next() {
            Some(Value::Stub(function)) => (function, args.next().unwrap_or_default()),
            Some(Value::Object(mut members)) => match members.remove("processEventBatch") {
                Some(Value::Stub(function)) => (function, Value::Object(members)),
                _ => return Err(usage()),
            },
            _ => return Err(usage()),
        };
        let after = options
            .get("replayAfterOffset")
            .filter(|value| !value.is_nullish());
        let after = after
            .map(|value| value.as_u64().ok_or_else(usage))
            .transpose()?;
        let types = options
            .get("eventTypes")
            .filter(|value| !value.is_nullish());
        let types = types
            .map(|value| value.deserialize().map_err(|_| usage()))
            .transpose()?;
        let request = Subscribe {
            event_types: types.unwrap_or_default(),
            ..Subscribe::new(&self.project, &self.key.path).after(after.unwrap_or(0))
        };
        let subscription = self
            .world
            .store
            .subscribe(request)
            .map_err(ApiError::from)?;
        Ok(Value::Stub(Stub::local(Following::start(
            subscription,
            function,
        ))))
    }
}

/// An event that a client may append.
fn client_event(value: &Value) -> Result<NewEvent, ApiError> {
    let event: NewEvent = value
        .deserialize()
        .map_err(|error| args::invalid(format!("append: {error}")))?;
    if event::is_server_only(&event.event_type) {
        let prefixes = event::SERVER_PREFIXES.join(", ");
        return Err(ApiError::new(
            ErrorCode::ForbiddenEventType,
            format!("only the server appends events of type {:?}; use a type that starts with none of {prefixes}", event.event_type),
        )
        .with("type", event.event_type));
    }
    let key = event.idempotency_key.as_deref().unwrap_or_default();
    if let Some(prefix) = SERVER_KEYS.iter().find(|prefix| key.starts_with(**prefix)) {
        return Err(args::invalid(format!(
            "idempotency keys that start with {prefix:?} are the server's"
        )));
    }
    Ok(event)
}

impl Target for StreamObject {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["getEvents"]) => run(async move { self.events(&args, false).await }),
            Some(["getEventPage"]) => run(async move { self.events(&args, true).await }),
            Some(["getEvent"]) => run(async move { self.event(&args).await }),
            Some(["head"]) => run(async move { self.head().await }),
            Some(["append"]) => run(async move { self.append(args).await }),
            Some(["waitForEvent"]) => run(async move { self.wait(&args).await }),
            Some(["subscribe" | "openConnection"]) => answer(self.subscribe(args)),
            _ => answer(Err(no_method("a stream", &path))),
        }
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        match names(&path).as_deref() {
            Some(["path"]) => answer(Ok(Value::String(self.key.path.to_string()))),
            _ => std::future::ready(Err(no_property(&path))).boxed(),
        }
    }
}
