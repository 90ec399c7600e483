// The official client on a hutch server: a session that counts what it sends before the
// first answer comes.
import { WebSocket } from "ws";
globalThis.WebSocket = WebSocket;
const { newWebSocketRpcSession } = await import("capnweb");

export const counts = { sent: 0, received: 0, sentBeforeFirstAnswer: 0 };

export function connect() {
  const socket = new WebSocket(process.env.HUTCH_URL.replace(/^http/, "ws") + "/api");
  const send = socket.send.bind(socket);
  socket.send = (message) => {
    counts.sent += 1;
    if (counts.received === 0) counts.sentBeforeFirstAnswer += 1;
    send(message);
  };
  socket.addEventListener("message", () => (counts.received += 1));
  const api = newWebSocketRpcSession(socket);
  const session = api.authenticate({ type: "bearer", token: process.env.HUTCH_TOKEN });
  return { socket, api, session };
}

export function report(value) {
  console.log(JSON.stringify(value));
  process.exit(0);
}
