// The part of web streams that scripts need: reading by `for await` or a reader,
// writing by a writer, and making either from a source or sink of one's own.

const HOST_READER = Symbol("host reader");
const HOST_SINK = Symbol("host sink");
const SEND = Symbol("send");

const closedReaders = new FinalizationRegistry((id) => host.cancel(id, "null"));

class ReadableStream {
  #next;
  #cancel;
  #hostId = null;
  #locked = false;

  constructor(source = {}, id) {
    if (source === HOST_READER) {
      this.#hostId = id;
      closedReaders.register(this, id, this);
      this.#next = () => ticketed((ticket) => host.read(id, ticket));
      this.#cancel = (reason) => host.cancel(id, JSON.stringify(encodeError(asError(reason ?? "canceled"), 0)));
      return;
    }
    const queue = new ChunkQueue(source);
    this.#next = () => queue.next();
    this.#cancel = (reason) => queue.cancel(reason);
  }

  get locked() { return this.#locked; }

  getReader() {
    if (this.#locked) throw new TypeError("the stream has a reader already");
    this.#locked = true;
    const read = async () => {
      const value = await this.#next();
      return value === END ? { done: true, value: undefined } : { done: false, value };
    };
    return {
      read,
      cancel: async (reason) => this.#cancel(reason),
      releaseLock: () => { this.#locked = false; },
    };
  }

  async cancel(reason) {
    if (this.#locked) throw new TypeError("the stream has a reader: cancel that");
    return this.#cancel(reason);
  }

  async *[Symbol.asyncIterator]() {
    const reader = this.getReader();
    let finished = false;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        yield value;
      }
      finished = true;
    } finally {
      if (!finished) await reader.cancel();
      reader.releaseLock();
    }
  }

  /** Hands a stream of the host on without copying it through here. */
  [SEND]() {
    if (this.#hostId === null || this.#locked) return null;
    this.#locked = true;
    closedReaders.unregister(this);
    return this.#hostId;
  }
}

/** Chunks of a source of one's own: `start`, `pull` and `cancel`, as the web has them. */
class ChunkQueue {
  #chunks = [];
  #ended = false;
  #failed = null;
  #wake = null;
  #source;
  #started;

  constructor(source) {
    this.#source = source;
    const queue = this;
    const change = (step) => (arg) => {
      step(arg);
      queue.#wake?.();
      queue.#wake = null;
    };
    this.controller = {
      get desiredSize() { return 1 - queue.#chunks.length; },
      enqueue: change((chunk) => { this.#chunks.push(chunk); }),
      close: change(() => { this.#ended = true; }),
      error: change((error) => { this.#failed = { error }; }),
    };
    this.#started = Promise.resolve(source.start?.(this.controller));
  }

  async next() {
    await this.#started;
    for (;;) {
      if (this.#chunks.length > 0) return this.#chunks.shift();
      if (this.#failed) throw this.#failed.error;
      if (this.#ended) return END;
      const change = new Promise((wake) => { this.#wake = wake; });
      if (this.#source.pull) await Promise.race([change, Promise.resolve(this.#source.pull(this.controller))]);
      else await change;
    }
  }

  async cancel(reason) {
    this.#ended = true;
    this.#chunks = [];
    await this.#source.cancel?.(reason);
  }
}

/** Sends anything that can be looped over asynchronously; answers the host's id of it. */
function sendReadable(source) {
  if (source instanceof ReadableStream) {
    const id = source[SEND]();
    if (id !== null) return id;
  }
  const id = host.pipe();
  (async () => {
    try {
      for await (const chunk of source) {
        const data = JSON.stringify(encode(chunk));
        await ticketed((ticket) => host.write(id, data, ticket));
      }
      host.close(id);
    } catch (error) {
      host.abort(id, JSON.stringify(encodeError(asError(error), 0)));
    }
  })();
  return id;
}

class WritableStream {
  #sink;

  constructor(sink = {}, id) {
    this.#sink = sink !== HOST_SINK ? sink : {
      write: (chunk) => {
        const data = JSON.stringify(encode(chunk));
        return ticketed((ticket) => host.sinkWrite(id, data, ticket));
      },
      close: () => ticketed((ticket) => host.sinkClose(id, ticket)),
      abort: (reason) => host.sinkAbort(id, JSON.stringify(encodeError(asError(reason ?? "aborted"), 0))),
    };
  }

  getWriter() {
    return {
      write: async (chunk) => this.#sink.write?.(chunk),
      close: async () => this.#sink.close?.(),
      abort: async (reason) => this.#sink.abort?.(reason),
      releaseLock() {},
    };
  }

  async close() { return this.#sink.close?.(); }
  async abort(reason) { return this.#sink.abort?.(reason); }

  /** Gives the server an end that writes here; answers the host's id of it. */
  [SEND]() {
    const { sink, reader } = JSON.parse(host.sinkPipe());
    (async () => {
      try {
        for await (const chunk of new ReadableStream(HOST_READER, reader)) await this.#sink.write?.(chunk);
        await this.#sink.close?.();
      } catch (error) {
        await this.#sink.abort?.(error);
      }
    })();
    return sink;
  }
}
