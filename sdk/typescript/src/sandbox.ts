import type { RpcTarget } from "capnweb";
import type { FileMethods } from "./files.js";
import type { Awake, BootTimings, LiveState, Processor } from "./live.js";
import type { ProcessMethods } from "./processes.js";

/** When an idle sandbox sleeps: seconds, or `"30s"`, `"10m"`, `"1h"`. */
export type SleepAfter = number | string;

export type InstanceType =
  | "lite"
  | "basic"
  | "standard-1"
  | "standard-2"
  | "standard-3"
  | "standard-4";

/** A sandbox. Every call wakes it, but those that only look. */
export interface Sandbox extends RpcTarget, ProcessMethods, FileMethods {
  readonly path: string;
  readonly projectId: string;
  readonly liveState: LiveState;
  readonly processor: Processor;

  /** Makes it; boots nothing. Rejects with `SANDBOX_ALREADY_EXISTS`. */
  create(options?: CreateOptions): Promise<Sandbox>;
  describe(): Promise<Description>;
  start(options?: { discardWorkspace?: boolean }): Promise<void>;
  /** Keeps the work and tears the machine down. */
  sleep(): Promise<void>;
  restart(): Promise<void>;
  /** For ever; the name is retired. */
  destroy(): Promise<void>;
  /** `null` takes a variable away. */
  setEnvVars(changes: Record<string, string | null>): Promise<void>;
  setSleepAfter(time: SleepAfter): Promise<void>;
  setKeepAlive(keep: boolean): Promise<void>;
  /** The end of the log of boots and daemon, which the host keeps. */
  logs(options?: { tailBytes?: number }): Promise<{ text: string; truncated: boolean }>;
}

export interface CreateOptions {
  instanceType?: InstanceType;
  sleepAfter?: SleepAfter;
  keepAlive?: boolean;
  env?: Record<string, string>;
}

/** What the server knows of a sandbox, and more than is listed here. */
export interface Description {
  path: string;
  status: "created" | "running" | "stopped" | "destroyed";
  running: boolean;
  instanceType: InstanceType;
  sleepAfter: string;
  keepAlive: boolean;
  env: Record<string, string>;
  createdAt: string;
  lastBackupId: string | null;
  degraded: boolean;
  bootId: string | null;
  startedAt: string | null;
  awake: Awake | null;
  lastBoot: BootTimings | null;
}

export interface SandboxSummary {
  path: string;
  status: Description["status"] | null;
  instanceType: InstanceType | null;
  createdAt: string;
}
