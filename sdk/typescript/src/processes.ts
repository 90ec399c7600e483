/** What both a command and a process can be told. Times are milliseconds. */
export interface CommandOptions {
  /** `/workspace` by default. */
  cwd?: string;
  env?: Record<string, string>;
  /** After this time everything the call started is ended, and it answers 124. */
  timeout?: number;
}

export interface ExecOptions extends CommandOptions {
  stdin?: string | Uint8Array | ReadableStream<Uint8Array>;
  /** `base64` has `stdoutBase64` and `stderrBase64` in the result in place of the texts. */
  encoding?: "utf-8" | "base64";
}

/** How a command ended: 128 + signal when killed, 124 after a timeout. */
export interface ExecResult {
  success: boolean;
  exitCode: number;
  stdout: string;
  stderr: string;
  stdoutBase64?: string;
  stderrBase64?: string;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  timedOut: boolean;
  oomKilled: boolean;
  command: string;
  duration: number;
  timestamp: string;
}

export type SpawnOptions = Omit<ExecOptions, "encoding"> &
  ({ argv: string[]; command?: never } | { command: string; argv?: never });

/** A running program. Disposing `exit` ends it and all it started. */
export interface Spawned {
  pid: number;
  stdout: ReadableStream<Uint8Array>;
  stderr: ReadableStream<Uint8Array>;
  exit: () => Promise<{ exitCode: number; signal?: number; timedOut: boolean }>;
}

/** A process that outlives the call that started it. */
export interface ProcessInfo {
  id: string;
  pid: number;
  command: string;
  status: "starting" | "running" | "completed" | "failed" | "killed" | "error";
  startTime: string;
  endTime?: string;
  exitCode?: number;
}

export interface Process extends ProcessInfo {
  kill: (signal?: string | number) => Promise<void>;
  getStatus: () => Promise<ProcessInfo["status"]>;
  getLogs: () => Promise<ProcessLogs>;
  streamLogs: () => Promise<ReadableStream<Uint8Array>>;
  waitForExit: (timeout?: number) => Promise<{ exitCode: number }>;
  waitForLog: (text: string, timeout?: number) => Promise<{ line: string }>;
  waitForPort: (port: number, options?: PortOptions) => Promise<void>;
}

/** When a port counts as served. Times are milliseconds. */
export interface PortOptions {
  /** `"http"` asks with GET, `"tcp"` only connects. */
  mode?: "http" | "tcp";
  path?: string;
  /** 200 to 399 unless told. */
  status?: number | { min?: number; max?: number };
  timeout?: number;
  interval?: number;
}

export interface ProcessLogs {
  processId: string;
  stdout: string;
  stderr: string;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
}

/** Commands and processes of a sandbox. */
export interface ProcessMethods {
  /** Runs text with `bash -c`. A code other than 0 is an answer, not an error. */
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  /** Server-sent events. */
  execStream(command: string, options?: ExecOptions): Promise<ReadableStream<Uint8Array>>;
  spawn(options: SpawnOptions): Promise<Spawned>;
  startProcess(
    command: string,
    options?: CommandOptions & { processId?: string; holdAwake?: boolean },
  ): Promise<Process>;
  listProcesses(): Promise<ProcessInfo[]>;
  getProcess(id: string): Promise<Process | null>;
  killProcess(id: string, signal?: string | number): Promise<void>;
  killAllProcesses(): Promise<number>;
  getProcessLogs(id: string): Promise<ProcessLogs>;
  streamProcessLogs(id: string): Promise<ReadableStream<Uint8Array>>;
  waitForExit(id: string, timeout?: number): Promise<{ exitCode: number }>;
  /** Waits for a line with this text, in what it wrote already too. */
  waitForLog(id: string, text: string, timeout?: number): Promise<{ line: string }>;
  /** Waits until the process itself serves the port. */
  waitForPort(id: string, port: number, options?: PortOptions): Promise<void>;
}
