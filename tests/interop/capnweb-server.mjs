// Serves the client of the Rust tests with the official server.
import { createServer } from "node:http";
import WebSocket, { WebSocketServer } from "ws";

globalThis.WebSocket ??= WebSocket;
// `capnweb` is version 0.12, `capnweb-08` is 0.8.
const { RpcTarget, newWebSocketRpcSession, nodeHttpBatchRpcResponse } = await import(process.argv[2] ?? "capnweb");

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
  list(length) {
    return Array.from({ length }, (_, index) => index);
  }
  counters(length) {
    return Array.from({ length }, (_, index) => new Counter(index));
  }
  blob(text) {
    return new Blob([text], { type: "text/x-test" });
  }
  async describe(value) {
    if (value instanceof Blob) return `${value.type} ${await value.text()}`;
    if (value instanceof Request) return `${value.method} ${value.url} ${value.headers.get("x-a")} ${await value.text()}`;
    if (value instanceof Response) return `${value.status} ${value.headers.get("x-a")} ${await value.text()}`;
    if (value instanceof Headers) return JSON.stringify([...value]);
    return `${value?.constructor?.name} ${value}`;
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

const http = createServer((request, response) => {
  nodeHttpBatchRpcResponse(request, response, new Main()).catch((error) => {
    response.writeHead(500);
    response.end(String(error));
  });
});
const server = new WebSocketServer({ server: http, maxPayload: 64 * 1024 * 1024 });
server.on("connection", (socket) => {
  const main = new Main();
  main.setRemote(newWebSocketRpcSession(socket, main));
});
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
// The test holds this open; when it is gone, so is the server.
process.stdin.on("end", () => process.exit(0)).resume();
