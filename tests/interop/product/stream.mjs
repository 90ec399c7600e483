// A quarter of a gibibyte as a stream, and a second one cancelled half way.
import { createHash } from "node:crypto";
import { connect, report } from "./session.mjs";

const sb = connect().session.projects.get("default").sandboxes.get("/sandboxes/main");
const whole = await sb.readFile("/workspace/big", { encoding: "none" });
const hash = createHash("sha256");
let bytes = 0;
for await (const chunk of whole.content) {
  hash.update(chunk);
  bytes += chunk.length;
}
const sum = await sb.readFile("/workspace/sum");
const equal = sum.content.split(" ")[0] === hash.digest("hex");

const half = await sb.readFile("/workspace/big", { encoding: "none" });
const reader = half.content.getReader();
let read = 0;
while (read < bytes / 2) read += (await reader.read()).value.length;
await reader.cancel(new Error("enough"));
const alive = await sb.exec("echo alive");
report({ bytes, equal, cancelledAt: read, alive: alive.stdout });
