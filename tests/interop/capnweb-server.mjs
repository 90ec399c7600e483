// Serves the client of the Rust tests with the official server.
import { RpcTarget, newWebSocketRpcSession } from "capnweb";
import WebSocket, { WebSocketServer } from "ws";

globalThis.WebSocket ??= WebSocket;

const pattern = (length) => Uint8Array.from({ length }, (_, index) => (index * 31) % 251);

class Counter extends RpcTarget {
  #value;
  constructor(value) {
    super();
    this.#value = value;
  }
  add(more) {
    return (this.#value += more);
  }
  get value() {
    return this.#value;
  }
}

class Main extends RpcTarget {
  #canceled = Promise.withResolvers();
  #remote;

  setRemote(remote) {
    this.#remote = remote;
  }
  echo(value) {
    return value?.dup?.() ?? value;
  }
  kind(value) {
    return Object.prototype.toString.call(value);
  }
  fail() {
    throw Object.assign(new Error("File not found: /x"), { code: "FILE_NOT_FOUND", details: { path: "/x" } });
  }
  counter(start) {
    return new Counter(start);
  }
  sum(...numbers) {
    return numbers.reduce((sum, number) => sum + number, 0);
  }
  tree() {
    return { inner: { list: ["zero", "one"], double: (number) => number * 2 } };
  }
  async each(count, callback) {
    for (let index = 0; index < count; index++) await callback(index);
    return count;
  }
  async greetBack(name) {
    return await this.#remote.greet(name);
  }
  read(length) {
    const data = pattern(length);
    let at = 0;
    return new ReadableStream({
      pull(controller) {
        if (at >= data.length) return controller.close();
        controller.enqueue(data.subarray(at, (at += 65_536)));
      },
    });
  }
  silent() {
    return new ReadableStream({ cancel: () => this.#canceled.resolve(true) });
  }
  endless() {
    return new ReadableStream({
      pull: (controller) => controller.enqueue(pattern(65_536)),
      cancel: () => this.#canceled.resolve(true),
    });
  }
  async canceled() {
    return await this.#canceled.promise;
  }
  async collect(stream) {
    const parts = [];
    for await (const chunk of stream) parts.push(chunk);
    return new Uint8Array(Buffer.concat(parts));
  }
  async readOne(stream) {
    const reader = stream.getReader();
    const { value } = await reader.read();
    await reader.cancel(new Error("enough"));
    return value.length;
  }
  async fill(sink, count) {
    const writer = sink.getWriter();
    for (let index = 0; index < count; index++) await writer.write(index);
    await writer.close();
  }
  sink() {
    const main = this;
    main.received = [];
    return new WritableStream({
      write(chunk) {
        main.received.push(chunk);
      },
    });
  }
  get written() {
    return this.received;
  }
}

const server = new WebSocketServer({ port: 0, host: "127.0.0.1", maxPayload: 64 * 1024 * 1024 });
server.on("connection", (socket) => {
  const main = new Main();
  main.setRemote(newWebSocketRpcSession(socket, main));
});
server.on("listening", () => console.log(server.address().port));
// The test holds this open; when it is gone, so is the server.
process.stdin.on("end", () => process.exit(0)).resume();
