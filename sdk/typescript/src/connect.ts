import { newWebSocketRpcSession, type RpcStub } from "capnweb";
import type { Entry, Session } from "./session.js";

/** A connection that has authenticated. */
export interface Connection {
  session: RpcStub<Session>;
  /** Called once, when the connection has ended; open calls reject then. */
  onBroken(callback: (reason: unknown) => void): void;
  close(): void;
}

export interface ConnectOptions {
  /** Such as `http://127.0.0.1:7070`. */
  url: string;
  token: string;
  /**
   * The WebSocket to use where there is no global one, as before Node.js 22. It becomes the
   * global one, since capnweb looks there.
   */
  WebSocket?: unknown;
}

/**
 * Connects and authenticates. Nothing is awaited: a wrong token shows at the first call, and
 * all of `session.projects.get(…).sandboxes.get(…).exec(…)` is one round trip.
 */
export function connect(options: ConnectOptions): Connection {
  const url = new URL("api", options.url.endsWith("/") ? options.url : `${options.url}/`);
  url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
  globalThis.WebSocket ??= options.WebSocket as typeof globalThis.WebSocket;
  if (globalThis.WebSocket === undefined) {
    throw new TypeError("there is no global WebSocket; pass one, such as that of the package ws");
  }
  const socket = new globalThis.WebSocket(url.href);
  // The type in full is deeper than the compiler follows; the methods are checked where used.
  const entry = newWebSocketRpcSession(socket) as unknown as RpcStub<Entry>;
  const session = entry.authenticate({
    type: "bearer",
    token: options.token,
  }) as unknown as RpcStub<Session>;
  return {
    session,
    onBroken: (callback) => entry.onRpcBroken(callback),
    close: () => socket.close(),
  };
}
