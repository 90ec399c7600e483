// Drives the server of the Rust tests with the official client.
import assert from "node:assert/strict";
import WebSocket from "ws";

globalThis.WebSocket ??= WebSocket;
// `capnweb` is version 0.12, `capnweb-08` is 0.8.
const library = process.argv[3] ?? "capnweb";
const modern = library === "capnweb";
const capnweb = await import(library);
const { newHttpBatchRpcSession, newWebSocketRpcSession, RpcSession, RpcStub, RpcTarget } = capnweb;
const session = (main) => {
  const socket = new WebSocket(url);
  if (modern) return new RpcSession(new capnweb.WebSocketTransport(socket), main);
  return new RpcSession(new Frames(socket), main);
};

/** Version 0.8 keeps its own transport to itself. */
class Frames {
  #socket;
  #queue = [];
  #waiting;
  #error;
  #open;
  constructor(socket) {
    this.#socket = socket;
    this.#open = new Promise((resolve) => socket.addEventListener("open", resolve));
    socket.addEventListener("message", (event) => this.#push({ value: event.data }));
    socket.addEventListener("close", (event) => {
      this.#error = new Error(`Peer closed WebSocket: ${event.code} ${event.reason}`);
      this.#push({ error: this.#error });
    });
  }
  #push(item) {
    if (this.#waiting) this.#waiting(item);
    else this.#queue.push(item);
    this.#waiting = undefined;
  }
  async send(message) {
    await this.#open;
    this.#socket.send(message);
  }
  async receive() {
    const item = this.#queue.shift() ?? (await new Promise((resolve) => (this.#waiting = resolve)));
    if (item.error) throw item.error;
    return item.value;
  }
  abort() {
    this.#socket.close(3000);
  }
}

class Main extends RpcTarget {
  greet(name) {
    return `hello ${name}`;
  }
}

const url = process.argv[2];
// The results of calls are thenable, not promises.
const rejects = (call, expected) => assert.rejects(async () => await call, expected);
const pattern = (length) => Uint8Array.from({ length }, (_, index) => (index * 31) % 251);
const cases = {
  async values({ api }) {
    const date = new Date(1_700_000_000_000);
    const values = [
      0, 1.5, -7, 1e300, NaN, Infinity, -Infinity, "text é 😀 \" \\ \n", "", true, null, undefined,
      123456789012345678901234567890n, date, [], [1, [2, []]], {}, { a: { b: [1, null] } },
    ];
    for (const value of values) assert.deepEqual(await api.echo(value), value);
    assert.ok(Number.isNaN((await api.echo(new Date(NaN))).getTime()));
    for (const length of [0, 1, 2, 3, 112_640, 1 << 20]) {
      assert.deepEqual(new Uint8Array(await api.echo(pattern(length))), pattern(length));
    }
    // Only the newer version has typed arrays and addresses. They come back as bytes and text.
    if (modern) {
      assert.deepEqual([...(await api.echo(new Uint16Array([1, 256])))], [1, 0, 0, 1]);
      assert.equal(await api.echo(new URL("https://example.com/a")), "https://example.com/a");
    }
  },

  async arguments({ api }) {
    assert.equal(await api.count(), 0);
    assert.equal(await api.count(1, undefined), 2);
    assert.deepEqual(await api.options({ encoding: undefined, recursive: true }), { recursive: true });
  },

  async errors({ api }) {
    const error = await api.fail().then(assert.fail, (error) => error);
    assert.equal(error.constructor, Error);
    assert.equal(error.message, "File not found: /x");
    assert.equal(error.code, "FILE_NOT_FOUND");
    assert.deepEqual(error.details, { path: "/x" });
    await rejects(api.nope(), { name: "TypeError", message: "'nope' is not a function." });
    const echoed = await api.echo(new RangeError("far", { cause: new TypeError("deep") }));
    assert.ok(echoed instanceof RangeError && echoed.cause instanceof TypeError);
  },

  async pipelining({ api }) {
    const counter = api.counter(10);
    const first = counter.add(1);
    const second = counter.add(2);
    assert.equal(await api.sum(first, second, 100), 11 + 13 + 100);
    assert.equal(await api.counter(5).add(1), 6);
    assert.deepEqual(await api.tree().inner.list, ["zero", "one"]);
    // The client sends an index as a name, which names no element, here as at its own server.
    assert.equal(await api.tree().inner.list[1], undefined);
    assert.equal(await api.tree().inner.double(4), 8);
    assert.equal(await counter.value, 13);
    await rejects(api.fail().anything.at.all(), { code: "FILE_NOT_FOUND" });
    await rejects(api.sum(1, api.fail()), { code: "FILE_NOT_FOUND" });
  },

  async callbacks({ api }) {
    const seen = [];
    assert.equal(await api.each(3, (number) => seen.push(number)), 3);
    assert.deepEqual(seen, [0, 1, 2]);
    await rejects(
      api.each(1, () => {
        throw Object.assign(new Error("mine"), { code: "MINE" });
      }),
      { message: "mine", code: "MINE" },
    );
    assert.equal(await api.greetBack("Ada"), "hello Ada");
    // A function that comes back is the official client's own again, but it fails to unpack one.
    await rejects(api.echo(() => {}), { message: "Tried to resolve a non-promise stub." });
  },

  async map({ api }) {
    const doubled = await api.tree().inner.list.map((item) => ({ item, again: api.echo(item) }));
    assert.deepEqual(doubled, [{ item: "zero", again: "zero" }, { item: "one", again: "one" }]);
    const seen = [];
    const note = new RpcStub((value) => void seen.push(value));
    const nested = await api.echo([[1, 2], [3]]).map((list) => list.map((number) => {
      note(number);
      return api.sum(number, 10);
    }));
    assert.deepEqual(nested, [[11, 12], [13]]);
    assert.deepEqual(seen, [1, 2, 3]);
    assert.deepEqual(await api.counters(2).map((counter) => counter.add(5)), [5, 6]);
    assert.equal(await api.echo(null).map(() => api.fail()), null);
    assert.equal(await api.echo(4).map((number) => api.sum(number, 1)), 5);
    await rejects(api.echo([1]).map(() => api.fail()), { code: "FILE_NOT_FOUND" });
    note[Symbol.dispose]();
    assert.equal(await api.echo(1), 1);
  },

  async readFromServer({ api }) {
    const stream = await api.read(1_000_000);
    const parts = [];
    for await (const chunk of stream) parts.push(chunk);
    assert.deepEqual(new Uint8Array(Buffer.concat(parts)), pattern(1_000_000));
    const broken = await api.readAndFail();
    const drain = async () => {
      for await (const chunk of broken) assert.equal(chunk, "only");
    };
    await rejects(drain(), { code: "DISK_FULL" });
  },

  async cancelAtServer({ api }) {
    const stream = await api.endless();
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel(new Error("enough"));
    assert.equal(await api.endlessEnded(), true);
  },

  async writeToServer({ api }) {
    const source = pattern(1_000_000);
    let at = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (at >= source.length) return controller.close();
        controller.enqueue(source.subarray(at, (at += 65_536)));
      },
    });
    assert.deepEqual(new Uint8Array(await api.collect(stream)), source);
  },

  async serverStopsReading({ api }) {
    let canceled;
    const done = new Promise((resolve) => (canceled = resolve));
    // Gives one chunk and then nothing: only the server can end it.
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(pattern(10)),
      cancel: canceled,
    });
    assert.equal(await api.readOne(stream), 10);
    const busy = new ReadableStream({ pull: (controller) => controller.enqueue(pattern(70_000)), cancel: canceled });
    assert.equal(await api.readOne(busy), 70_000);
    await done;
  },

  async writableSink({ api }) {
    const chunks = [];
    await api.fill(new WritableStream({ write: (chunk) => void chunks.push(chunk) }), 20);
    assert.deepEqual(chunks, Array.from({ length: 20 }, (_, index) => index));
  },

  async fetchTypes({ api }) {
    const blob = await api.echo(new Blob(["content"], { type: "text/x-test" }));
    assert.equal(blob.type, "text/x-test");
    assert.equal(await blob.text(), "content");
    const headers = await api.echo(new Headers([["a", "1"], ["b", "2"]]));
    assert.deepEqual([...headers], [["a", "1"], ["b", "2"]]);
    const response = await api.echo(new Response("body", { status: 404, headers: { "x-a": "1" } }));
    assert.equal(response.status, 404);
    assert.equal(response.headers.get("x-a"), "1");
    assert.equal(await response.text(), "body");
    const request = new Request("https://example.com/p", { method: "POST", body: "data", duplex: "half" });
    const back = await api.echo(request);
    assert.equal(back.method, "POST");
    assert.equal(await back.text(), "data");
  },

  async manyFailingCallsWithCallbacks({ api, session }) {
    for (let round = 0; round < 10; round++) {
      const calls = Array.from({ length: 1000 }, () => api.fail(() => {}).then(assert.fail, (error) => error.code));
      assert.ok((await Promise.all(calls)).every((code) => code === "FILE_NOT_FOUND"));
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    const stats = session.getStats();
    assert.ok(stats.imports <= 1 && stats.exports <= 1, JSON.stringify(stats));
    const server = await api.stats();
    // The two that the call for the numbers itself takes are not counted.
    assert.ok(server.imports <= 1 && server.exports <= 2, JSON.stringify(server));
  },

  async tooLarge({ api }) {
    await rejects(api.big(), { code: "RPC_MESSAGE_TOO_LARGE" });
    assert.equal(await api.echo(1), 1);
  },
};

for (const [name, test] of Object.entries(cases)) {
  const joined = session(new Main());
  const api = joined.getRemoteMain();
  try {
    await test({ api, session: joined });
    console.log(`ok ${name}`);
  } catch (error) {
    console.error(`failed: ${name}`);
    throw error;
  }
  api[Symbol.dispose]();
}

// The short form works too, and a session that ends says why.
const api = newWebSocketRpcSession(url);
assert.equal(await api.echo("short"), "short");
// Version 0.8 wraps the error.
const aborted = await api.abort().then(assert.fail, (error) => error.value ?? error);
assert.equal(aborted.message, "asked to");

// One request: calls on results, errors, a map; what is not awaited is not waited for.
const http = url.replace(/^ws/, "http");
const batch = newHttpBatchRpcSession(http);
const counter = batch.counter(10);
const [sum, failed, echoed, mapped] = await Promise.all([
  batch.sum(counter.add(1), counter.add(2)),
  batch.fail().then(assert.fail, (error) => error),
  batch.echo({ date: new Date(5), big: 7n, bytes: pattern(1000), list: [undefined, null] }),
  batch.tree().inner.list.map((item) => batch.echo(item)),
]);
assert.equal(sum, 24);
assert.equal(failed.code, "FILE_NOT_FOUND");
assert.deepEqual(failed.details, { path: "/x" });
assert.deepEqual([echoed.date, echoed.big, echoed.list], [new Date(5), 7n, [undefined, null]]);
assert.deepEqual(new Uint8Array(echoed.bytes), pattern(1000));
assert.deepEqual(mapped, ["zero", "one"]);
await rejects(batch.echo(1), { message: "Batch RPC request ended." });
// A callback has no way back in a batch, and says so instead of waiting.
await rejects(newHttpBatchRpcSession(http).each(1, () => {}), /Batch RPC request ended/);
console.log("done");
process.exit(0);
