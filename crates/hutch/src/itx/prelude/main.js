// Runs the script and reports its end.

Object.assign(globalThis, timerGlobals, {
  console: consoleGlobal, TextEncoder, TextDecoder, ReadableStream, WritableStream, atob, btoa,
});

/** Waits for results anywhere in the value, so that they need no `await` of their own. */
async function fetchAll(value, depth = 0) {
  if (typeof value === "function" && remotes.has(value)) value = await value;
  if (value === null || typeof value !== "object" || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return Promise.all(value.map((item) => fetchAll(item, depth + 1)));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const out = {};
  for (const key of Object.keys(value)) out[key] = await fetchAll(value[key], depth + 1);
  return out;
}

/** What JSON lacks: bytes become {"base64": …}, big integers text, functions and remote objects a name. */
function replacer(key, value) {
  const raw = this[key];
  if (typeof raw === "bigint") return String(raw);
  if (typeof raw === "function") return remotes.has(raw) ? "[remote object]" : "[function]";
  if (raw === null || typeof raw !== "object") return value;
  if (raw instanceof Error) return { name: raw.name, message: raw.message, ...raw };
  if (raw instanceof Map || raw instanceof Set) return [...raw];
  if (raw instanceof ReadableStream || raw instanceof WritableStream) return "[stream]";
  const bytes = asBytes(raw);
  return bytes ? { base64: bytes.toBase64() } : value;
}

function describe(thrown) {
  const error = asError(thrown);
  const plain = (value) => {
    try { return JSON.parse(JSON.stringify(value, replacer) ?? "null"); } catch { return null; }
  };
  return JSON.stringify({
    name: String(error.name).toWellFormed(),
    message: String(error.message).toWellFormed(),
    stack: typeof error.stack === "string" ? error.stack.toWellFormed() : null,
    code: typeof error.code === "string" ? error.code : null,
    details: plain(error.details),
    httpStatus: typeof error.httpStatus === "number" ? error.httpStatus : null,
  });
}

function run(script, node, indent) {
  Promise.resolve(makeRemote(node, true))
    .then(script)
    .then((value) => fetchAll(value))
    .then((value) => JSON.stringify(value, replacer, indent) ?? "null")
    .then((json) => host.finish(true, json), (error) => host.finish(false, describe(error)));
}

return {
  run, settled, invoked, fired,
  dropped: (id) => { functions.byId.delete(id); },
};
