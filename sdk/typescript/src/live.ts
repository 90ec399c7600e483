import type { RpcTarget } from "capnweb";

/** What the events of a sandbox add up to. */
export interface State {
  status: "created" | "running" | "stopped" | "destroyed";
  running: boolean;
  instanceType: string;
  env: Record<string, string>;
  lastBackupId: string | null;
  /** The last restore failed; `start({ discardWorkspace: true })` is the way out. */
  degraded: boolean;
}

/** A value replaced whole, or an object's members one by one. */
export type Patch = { set: unknown } | { fields?: Record<string, Patch>; drop?: string[] };

/** The first message is a snapshot. After one that is missing, subscribe again. */
export type LiveMessage =
  | { type: "snapshot"; revision: number; state: State }
  | { type: "patch"; from: number; to: number; patch: Patch };

/** The state as it changes. Following it never wakes the sandbox. */
export interface LiveState extends RpcTarget {
  get(): Promise<{ revision: number; state: State }>;
  /** The next message comes once the function is done with the last one. */
  subscribe(follow: (message: LiveMessage) => void | Promise<void>): Promise<Following>;
}

export interface Following extends RpcTarget {
  /** Whether messages still come. */
  ping(): Promise<boolean>;
  unsubscribe(): Promise<void>;
}

/** How far the server is with the sandbox's events. Asking never wakes it. */
export interface Processor extends RpcTarget {
  snapshot(): Promise<{ offset: number; state: State }>;
  /** Waits until an event is part of the state; 15 s unless told. */
  waitUntilProcessed(options: { offset: number; timeoutMs?: number }): Promise<{ offset: number }>;
  getRuntimeState(): Promise<RuntimeState>;
}

export interface RuntimeState {
  offset: number;
  /** What is being done now: `"wake"`, `"sleep"`, `"restart"`, … */
  step: string | null;
  waitingCalls: number;
  bootId: string | null;
  startedAt: string | null;
  awake: Awake | null;
  lastBoot: BootTimings | null;
}

/** Why a sandbox is awake, and when it would sleep. */
export interface Awake {
  openCalls: number;
  quietMs: number;
  /** Parts of a core, over the idle time. */
  cpu: number | null;
  sleepsInMs: number | null;
  sleepsAt: string | null;
  reason: string;
  reasons: { kind: string; message: string }[];
}

/** Milliseconds. */
export interface BootTimings {
  workspaceMs: number;
  machineMs: number;
  commitMs: number;
  totalMs: number;
}

/** A value after a patch. Throws if the patch does not fit it. */
export function applyPatch(value: unknown, patch: Patch): unknown {
  if ("set" in patch) return patch.set;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError("the patch changes members of something that is no object");
  }
  const members = new Map<string, unknown>(Object.entries(value));
  for (const name of patch.drop ?? []) members.delete(name);
  for (const [name, change] of Object.entries(patch.fields ?? {})) {
    members.set(name, applyPatch(members.get(name), change));
  }
  return Object.fromEntries(members);
}
