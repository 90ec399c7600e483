// Between JavaScript values and the tagged JSON that crosses to the host. Arrays
// are ["a", items]; everything else that JSON lacks is an array with another tag.

const MAX_DEPTH = 200;
const DROPPED_KEYS = new Set(["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "toJSON"]);
const ERROR_CLASSES = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

function encode(value, depth = 0) {
  if (depth > MAX_DEPTH) throw new TypeError("the value is nested too deeply, or holds itself");
  switch (typeof value) {
    case "boolean": return value;
    case "string": return value.toWellFormed();
    case "undefined": return ["u"];
    case "bigint": return ["i", String(value)];
    case "symbol": throw new TypeError("a symbol cannot be sent");
    case "number": return encodeNumber(value);
  }
  if (value === null) return null;
  const remote = remotes.get(value);
  if (remote) return ["p", remote.root.node, remote.path, remote.root.resolved];
  if (typeof value === "function") return ["f", functions.add(value)];
  if (Array.isArray(value)) return ["a", Array.from(value, (item) => encode(item, depth + 1))];
  if (value instanceof Date) return ["d", Number.isNaN(value.getTime()) ? null : value.getTime()];
  if (value instanceof Error) return ["e", encodeError(value, depth)];
  const bytes = asBytes(value);
  if (bytes) return ["b", bytes.toBase64()];
  if (value instanceof WritableStream) return ["w", value[SEND]()];
  if (typeof value[Symbol.asyncIterator] === "function") return ["r", sendReadable(value)];
  if (value instanceof Promise) throw new TypeError("a promise cannot be sent: await it first");
  return encodeObject(value, depth);
}

function encodeNumber(value) {
  if (Number.isFinite(value)) return value;
  return ["n", Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf"];
}

function encodeObject(value, depth) {
  const proto = Object.getPrototypeOf(value);
  if (proto !== null && proto !== Object.prototype) {
    throw new TypeError(`a value of class ${value.constructor?.name ?? "unknown"} cannot be sent: use a plain object`);
  }
  const out = Object.create(null);
  for (const key of Object.keys(value)) {
    if (!DROPPED_KEYS.has(key)) out[key.toWellFormed()] = encode(value[key], depth + 1);
  }
  return out;
}

function encodeError(error, depth) {
  const props = Object.create(null);
  for (const key of Object.keys(error)) {
    if (!DROPPED_KEYS.has(key) && key !== "stack") props[key] = encode(error[key], depth + 1);
  }
  return { name: String(error.name), message: String(error.message).toWellFormed(), props };
}

function asBytes(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return null;
}

function decode(data) {
  if (data === null || typeof data !== "object") return data;
  if (!Array.isArray(data)) {
    const out = {};
    for (const key of Object.keys(data)) out[key] = decode(data[key]);
    return out;
  }
  const [tag, body] = data;
  switch (tag) {
    case "a": return body.map(decode);
    case "u": return undefined;
    case "n": return { nan: NaN, inf: Infinity, "-inf": -Infinity }[body];
    case "i": return BigInt(body);
    case "d": return new Date(body ?? NaN);
    case "b": return Uint8Array.fromBase64(body);
    case "e": return decodeError(body);
    case "s": return makeRemote(body, true);
    case "r": return new ReadableStream(HOST_READER, body);
    case "w": return new WritableStream(HOST_SINK, body);
  }
  throw new TypeError(`unknown tag ${tag}`);
}

function decodeError({ name, message, stack, props }) {
  const error = new (ERROR_CLASSES[name] ?? Error)(message);
  if (stack) Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true });
  for (const key of Object.keys(props)) {
    if (key !== "name" && key !== "message" && key !== "stack") error[key] = decode(props[key]);
  }
  return error;
}
