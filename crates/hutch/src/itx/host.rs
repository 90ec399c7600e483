//! What the script's numbers stand for: references, streams, functions and
//! calls that wait for its answer.

use super::{engine::Event, functions::Exported, timers::Timers};
use capnweb::{
    ErrorValue, Path, Pending, ReadableStream, StreamWriter, Stub, Value, WritableStream,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tokio::sync::{Mutex, mpsc, oneshot};

/// Results of calls that nobody awaits and that are kept all the same, because
/// letting go of one gives its call up.
const KEPT: usize = 4096;

/// A reference that the script holds.
struct Reference {
    stub: Stub,
    /// The result, until it is fetched.
    pending: Option<Pending>,
    /// Whether another call was made on the result or with it.
    used: bool,
}

/// A stream's end that operations take turns on. Empty once it is closed.
pub type Shared<T> = Arc<Mutex<Option<T>>>;

/// All that the script's numbers stand for.
pub struct Tables {
    next: u32,
    references: HashMap<u32, Reference>,
    kept: VecDeque<Pending>,
    forgotten: usize,
    readers: HashMap<u32, Shared<ReadableStream>>,
    writers: HashMap<u32, Shared<StreamWriter>>,
    sinks: HashMap<u32, Shared<WritableStream>>,
    readables: HashMap<u32, ReadableStream>,
    writables: HashMap<u32, WritableStream>,
    replies: HashMap<u32, oneshot::Sender<Result<Value, ErrorValue>>>,
    /// When timers are due.
    pub timers: Timers,
    /// Operations under way that will report.
    pub operations: usize,
    /// Functions of the script that the server can still call.
    pub exported: usize,
    events: mpsc::Sender<Event>,
}

impl Tables {
    /// Empty tables that report to `events`.
    pub fn new(events: mpsc::Sender<Event>) -> Self {
        Self {
            next: 1,
            references: HashMap::new(),
            kept: VecDeque::new(),
            forgotten: 0,
            readers: HashMap::new(),
            writers: HashMap::new(),
            sinks: HashMap::new(),
            readables: HashMap::new(),
            writables: HashMap::new(),
            replies: HashMap::new(),
            timers: Timers::default(),
            operations: 0,
            exported: 0,
            events,
        }
    }

    /// Where operations report.
    pub fn events(&self) -> mpsc::Sender<Event> {
        self.events.clone()
    }

    /// Whether anything can still happen without the script doing it.
    pub fn is_idle(&self) -> bool {
        self.operations == 0 && self.exported == 0 && self.timers.next().is_none()
    }

    fn number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Puts an object in.
    pub fn add_object(&mut self, stub: Stub) -> u32 {
        let number = self.number();
        let reference = Reference {
            stub,
            pending: None,
            used: false,
        };
        self.references.insert(number, reference);
        number
    }

    /// Puts the result of a call in.
    pub fn add_result(&mut self, pending: Pending) -> u32 {
        let number = self.number();
        let reference = Reference {
            stub: pending.stub(),
            pending: Some(pending),
            used: false,
        };
        self.references.insert(number, reference);
        number
    }

    /// The object behind a number, to make a call on it or with it.
    pub fn stub(&mut self, number: u32) -> Result<&Stub, String> {
        let reference = self.references.get_mut(&number).ok_or_else(gone)?;
        reference.used = true;
        Ok(&reference.stub)
    }

    /// How many calls were made whose result the script never asked for, nor used.
    pub fn forgotten(&self) -> usize {
        let held = self.references.values();
        let held = held.filter(|reference| reference.pending.is_some() && !reference.used);
        self.forgotten + held.count()
    }

    /// Takes the result of a call out, to await it. It can be taken once.
    pub fn take_result(&mut self, number: u32) -> Result<Pending, String> {
        let reference = self.references.get_mut(&number).ok_or_else(gone)?;
        let pending = reference.pending.take();
        pending.ok_or_else(|| "the result was fetched already".to_owned())
    }

    /// Forgets a reference. A call whose result nobody fetched goes on.
    pub fn release(&mut self, number: u32) {
        let Some(reference) = self.references.remove(&number) else {
            return;
        };
        let Some(pending) = reference.pending else {
            return;
        };
        self.forgotten += usize::from(!reference.used);
        self.kept.push_back(pending);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// A reference as an argument.
    pub fn reference(&mut self, number: u32, path: Path, fetched: bool) -> Result<Value, String> {
        let stub = self.stub(number)?;
        Ok(match (path.is_empty(), fetched) {
            (true, true) => Value::Stub(stub.clone()),
            (true, false) => Value::Promise(stub.clone()),
            (false, _) => Value::Promise(stub.get(path).stub()),
        })
    }

    /// A function of the script as an argument.
    pub fn function(&mut self, id: u32) -> Stub {
        self.exported += 1;
        Exported::stub(id, self.events.clone())
    }

    /// Puts a received stream in.
    pub fn add_reader(&mut self, stream: ReadableStream) -> u32 {
        let number = self.number();
        self.readers.insert(number, shared(stream));
        number
    }

    /// Puts a received sink in.
    pub fn add_sink(&mut self, sink: WritableStream) -> u32 {
        let number = self.number();
        self.sinks.insert(number, shared(sink));
        number
    }

    /// Makes a stream for the script to write and to send.
    pub fn pipe(&mut self, window: usize) -> u32 {
        let (writer, stream) = ReadableStream::channel(window);
        let number = self.number();
        self.writers.insert(number, shared(writer));
        self.readables.insert(number, stream);
        number
    }

    /// Makes a sink for the script to send, and the stream of what is written to it.
    pub fn sink_pipe(&mut self, window: usize) -> (u32, u32) {
        let (sink, stream) = WritableStream::channel(window);
        let number = self.number();
        self.writables.insert(number, sink);
        (number, self.add_reader(stream))
    }

    /// A stream to send: one made here, or one received that nobody has read.
    pub fn take_readable(&mut self, number: u32) -> Result<ReadableStream, String> {
        if let Some(stream) = self.readables.remove(&number) {
            return Ok(stream);
        }
        let reader = self.readers.remove(&number).and_then(Arc::into_inner);
        reader
            .and_then(Mutex::into_inner)
            .ok_or_else(|| "the stream is read already".to_owned())
    }

    /// A sink to send.
    pub fn take_writable(&mut self, number: u32) -> Result<WritableStream, String> {
        self.writables.remove(&number).ok_or_else(gone)
    }

    /// A received stream to read.
    pub fn reader(&self, number: u32) -> Result<Shared<ReadableStream>, String> {
        self.readers.get(&number).cloned().ok_or_else(gone)
    }

    /// Forgets a received stream, which cancels it.
    pub fn remove_reader(&mut self, number: u32) -> Option<Shared<ReadableStream>> {
        self.readers.remove(&number)
    }

    /// A stream of the script's to write.
    pub fn writer(&self, number: u32) -> Result<Shared<StreamWriter>, String> {
        self.writers.get(&number).cloned().ok_or_else(gone)
    }

    /// Forgets a stream of the script's, to end it.
    pub fn remove_writer(&mut self, number: u32) -> Option<Shared<StreamWriter>> {
        self.writers.remove(&number)
    }

    /// A received sink to write.
    pub fn sink(&self, number: u32) -> Result<Shared<WritableStream>, String> {
        self.sinks.get(&number).cloned().ok_or_else(gone)
    }

    /// Forgets a received sink, to end it.
    pub fn remove_sink(&mut self, number: u32) -> Option<Shared<WritableStream>> {
        self.sinks.remove(&number)
    }

    /// Keeps a call of the server's until the script answers it.
    pub fn add_reply(&mut self, reply: oneshot::Sender<Result<Value, ErrorValue>>) -> u32 {
        let number = self.number();
        self.replies.insert(number, reply);
        number
    }

    /// Takes the call that the script answers.
    pub fn take_reply(
        &mut self,
        number: u32,
    ) -> Option<oneshot::Sender<Result<Value, ErrorValue>>> {
        self.replies.remove(&number)
    }
}

fn shared<T>(end: T) -> Shared<T> {
    Arc::new(Mutex::new(Some(end)))
}

fn gone() -> String {
    "the object is gone".to_owned()
}
