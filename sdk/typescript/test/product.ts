// Every group of methods once, typed, on a real server. Prints one line of JSON.
import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { applyPatch, connect, isHutchError, type EventBatch, type LiveMessage } from "../src/index.js";

const env = (name: string): string => {
  const value = process.env[name];
  assert(value !== undefined, `${name} is not set`);
  return value;
};

const { session, close } = connect({ url: env("HUTCH_URL"), token: env("HUTCH_TOKEN"), WebSocket });
const itx = session.projects.get("default");
const sandbox = itx.sandboxes.get("/sandboxes/typed");

assert.equal((await session.whoami()).type, "admin");
assert.equal((await session.projects.list())[0]?.slug, "default");
await assert.rejects(
  async () => await sandbox.exec("true"),
  (error) => isHutchError(error) && error.code === "SANDBOX_NOT_FOUND" && error.httpStatus === 404,
);

await sandbox.create({ instanceType: "lite", sleepAfter: "5m", env: { GREETING: "hi" } });
const result = await sandbox.exec("echo $GREETING; cat; exit 3", { stdin: "there" });
assert.deepEqual([result.exitCode, result.stdout], [3, "hi\nthere"]);
const bytes = await sandbox.exec("printf '\\377'", { encoding: "base64" });
assert.equal(bytes.stdoutBase64, "/w==");

const stdin = new ReadableStream<Uint8Array>({
  start(controller) {
    controller.enqueue(new TextEncoder().encode("piped"));
    controller.close();
  },
});
const spawned = await sandbox.spawn({ argv: ["cat"], stdin });
assert.equal(await new Response(spawned.stdout as ReadableStream).text(), "piped");
assert.equal((await spawned.exit()).exitCode, 0);

const process1 = await sandbox.startProcess("echo started; exit 4");
assert.equal((await process1.waitForExit()).exitCode, 4);
assert.equal((await sandbox.getProcessLogs(process1.id)).stdout, "started\n");

const server = await sandbox.startProcess("python3 -u -m http.server 8088");
assert.ok((await server.waitForLog("Serving HTTP", 20_000)).line.includes("8088"));
await server.waitForPort(8088, { path: "/", status: { min: 200, max: 200 }, timeout: 20_000 });
await server.kill();

const written = await sandbox.writeFile("/workspace/d/f", new Uint8Array([0, 255]));
assert.equal(written.bytesWritten, 2);
const read = await sandbox.readFile("/workspace/d/f");
assert.deepEqual([read.content, read.isBinary, read.size], ["AP8=", true, 2]);
const listed = await sandbox.listFiles("/workspace/d");
assert.deepEqual([listed.count, listed.files[0]?.name, listed.files[0]?.type], [1, "f", "file"]);

// capnweb gives a stream of a class of its own, and sends plain ones alone.
const received: ReadableStream<Uint8Array> = await sandbox.readTar("/workspace/d");
const archive = new ReadableStream<Uint8Array>({
  async start(controller) {
    for await (const chunk of received) controller.enqueue(chunk);
    controller.close();
  },
});
const copied = await sandbox.writeTar("/workspace/copy", archive, { place: "as" });
assert.deepEqual([copied.entries, copied.bytes], [2, 2]);
assert.equal((await sandbox.exists("/workspace/copy/f")).exists, true);

const messages: LiveMessage[] = [];
let changed = (): void => undefined;
const patched = new Promise<void>((resolve) => (changed = resolve));
const following = await sandbox.liveState.subscribe((message) => {
  messages.push(message);
  if (message.type === "patch") changed();
});
await sandbox.setEnvVars({ MORE: "1", GREETING: null });
await patched;
const [whole, change] = messages;
assert.ok(whole?.type === "snapshot" && change?.type === "patch");
assert.deepEqual(applyPatch(whole.state, change.patch), (await sandbox.liveState.get()).state);
assert.equal(await following.ping(), true);
await following.unsubscribe();
const { offset } = await sandbox.processor.waitUntilProcessed({ offset: change.to });
assert.deepEqual((await sandbox.processor.snapshot()).state.env, { MORE: "1" });
const runtime = await sandbox.processor.getRuntimeState();
assert.ok(runtime.offset >= offset && runtime.awake?.reasons[0]?.kind === "recentActivity");

await sandbox.setSleepAfter(90);
const described = await sandbox.describe();
assert.deepEqual([described.status, described.sleepAfter, described.env.MORE], [
  "running",
  "90s",
  "1",
]);
assert.ok(described.awake !== null && described.lastBoot !== null);
await sandbox.sleep();
assert.ok((await sandbox.logs({ tailBytes: 1000 })).text.length > 0);

const stream = itx.streams.get("/typed");
const first = (await stream.append({ type: "typed/added", payload: { n: 1 } }))[0];
assert.equal(first?.offset, 1);
const batch = await new Promise<EventBatch>((resolve) => {
  void stream.subscribe({ processEventBatch: (events: EventBatch) => resolve(events) });
});
assert.deepEqual([batch.events[0]?.type, batch.events[0]?.payload.n], ["typed/added", 1]);
assert.equal((await stream.head())?.maxOffset, 1);

const key = await session.keys.create({ project: "default", expiresIn: "1h" });
assert.ok(key.token.length > 0 && key.valid);
assert.ok((await session.keys.list()).some((listed) => listed.id === key.id));
await session.keys.revoke(key.id);

await sandbox.destroy();
assert.equal((await itx.sandboxes.list())[0]?.status, "destroyed");
console.log(JSON.stringify({ ok: true }));
close();
