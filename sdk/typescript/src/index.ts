export * from "./connect.js";
export * from "./errors.js";
export type * from "./files.js";
export * from "./live.js";
export type * from "./processes.js";
export type * from "./sandbox.js";
export type * from "./session.js";
export type * from "./streams.js";
