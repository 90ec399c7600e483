// `console` writes to stderr: stdout is for the script's value alone.

function inspect(value, depth = 0) {
  switch (typeof value) {
    case "string": return depth === 0 ? value : JSON.stringify(value);
    case "bigint": return `${value}n`;
    case "function": return remotes.has(value) ? "[remote object]" : `[function ${value.name || "anonymous"}]`;
    case "object": break;
    default: return String(value);
  }
  if (value === null) return "null";
  if (value instanceof Error) return inspectError(value, depth);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  const bytes = asBytes(value);
  if (bytes) return `${value.constructor.name}(${bytes.length}) ${bytes.subarray(0, 32).toHex()}${bytes.length > 32 ? "…" : ""}`;
  if (depth > 4) return Array.isArray(value) ? "[…]" : "{…}";
  const inner = (item) => inspect(item, depth + 1);
  if (Array.isArray(value)) return `[${value.map(inner).join(", ")}]`;
  if (value instanceof Map) return `Map {${[...value].map(([k, v]) => `${inner(k)} => ${inner(v)}`).join(", ")}}`;
  if (value instanceof Set) return `Set {${[...value].map(inner).join(", ")}}`;
  const name = value.constructor && value.constructor !== Object ? `${value.constructor.name} ` : "";
  const pairs = Object.keys(value).map((key) => `${key}: ${inner(value[key])}`);
  return pairs.length === 0 ? `${name}{}` : `${name}{ ${pairs.join(", ")} }`;
}

function inspectError(error, depth) {
  const props = Object.keys(error).filter((key) => key !== "stack");
  const more = props.map((key) => `${key}: ${inspect(error[key], depth + 1)}`);
  const head = `${error.name}: ${error.message}`;
  return more.length === 0 ? head : `${head} { ${more.join(", ")} }`;
}

const print = (...items) => host.print(items.map((item) => inspect(item)).join(" ").toWellFormed());
const consoleGlobal = Object.freeze({
  log: print, info: print, warn: print, error: print, debug: print, trace: print, dir: print,
  assert(truth, ...items) { if (!truth) print("assertion failed", ...items); },
});
