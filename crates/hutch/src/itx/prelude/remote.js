// `itx` and everything obtained from it: proxies that stand for objects of the
// server. Reading a property only lengthens a path; a call is sent at once, in
// order, also on results that have not arrived; `await` fetches the result.

const remotes = new WeakMap();
const released = new FinalizationRegistry((node) => host.release(node));

/** A proxy for the host's reference `node`: an object (`resolved`) or the result of a call. */
function makeRemote(node, resolved) {
  const root = { node, resolved, promise: null };
  released.register(root, node);
  return view(root, []);
}

function view(root, path) {
  const proxy = new Proxy(() => {}, {
    get: (_, key) => property(root, path, key, proxy),
    apply: (_, self, args) => makeRemote(host.call(root.node, JSON.stringify(path), send(args)), false),
    set() { throw new TypeError("a property of a remote object cannot be set"); },
    deleteProperty() { throw new TypeError("a property of a remote object cannot be deleted"); },
    construct() { throw new TypeError("a remote object cannot be constructed"); },
    getPrototypeOf: () => null,
    has: () => false,
    ownKeys: () => [],
  });
  remotes.set(proxy, { root, path });
  return proxy;
}

function property(root, path, key, proxy) {
  const fetched = root.resolved && path.length === 0;
  if (typeof key === "symbol") {
    if (key === Symbol.toPrimitive) return () => "[remote object]";
    // A stream that was not awaited yet can be looped over all the same.
    if (key === Symbol.asyncIterator && !fetched) return async function* () { yield* await proxy; };
    return undefined;
  }
  switch (key) {
    // An object is not a promise, or `await` would call a method of that name.
    case "then": return fetched ? undefined : (done, failed) => fetchResult(root, path).then(done, failed);
    case "catch": if (!fetched) return (failed) => fetchResult(root, path).catch(failed); break;
    case "finally": if (!fetched) return (run) => fetchResult(root, path).finally(run); break;
    case "toString": return () => "[remote object]";
    case "constructor": case "__proto__": case "prototype": case "toJSON": case "valueOf": case "hasOwnProperty":
      return undefined;
  }
  return view(root, [...path, key.toWellFormed()]);
}

function fetchResult(root, path) {
  if (path.length > 0) {
    const node = host.get(root.node, JSON.stringify(path));
    return ticketed((ticket) => host.pull(node, ticket)).finally(() => host.release(node));
  }
  root.promise ??= ticketed((ticket) => host.pull(root.node, ticket));
  return root.promise;
}

/** The arguments of a call, encoded. Streams among them start to flow after the call. */
function send(args) {
  return JSON.stringify(args.map((arg) => encode(arg)));
}

// Operations of the host that end later.
const waiting = new Map();
let nextTicket = 1;

function ticketed(start) {
  return new Promise((resolve, reject) => {
    const ticket = nextTicket++;
    waiting.set(ticket, { resolve, reject });
    try {
      start(ticket);
    } catch (error) {
      waiting.delete(ticket);
      reject(error);
    }
  });
}

// What a stream's end resolves to.
const END = Symbol("end");

function settled(ticket, kind, data) {
  const entry = waiting.get(ticket);
  waiting.delete(ticket);
  if (kind === "end") return entry?.resolve(END);
  const value = decode(JSON.parse(data));
  if (kind === "error") entry?.reject(value);
  else entry?.resolve(value);
}

// Our functions that the server can call.
const functions = {
  byId: new Map(),
  next: 1,
  add(fn) {
    const id = this.next++;
    this.byId.set(id, fn);
    return id;
  },
};

function invoked(id, reply, data) {
  Promise.resolve()
    .then(() => {
      const fn = functions.byId.get(id);
      if (!fn) throw new TypeError("the function is gone");
      return fn(...decode(JSON.parse(data)));
    })
    .then((value) => host.reply(reply, true, JSON.stringify(encode(value))))
    .catch((error) => host.reply(reply, false, JSON.stringify(encodeError(asError(error), 0))));
}

function asError(thrown) {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
