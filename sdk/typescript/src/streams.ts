import type { RpcTarget } from "capnweb";

/** An append-only stream of events. */
export interface EventStream extends RpcTarget {
  readonly path: string;
  /** All or none. Types under `sandbox/ stream/ project/ secret/ egress/` are the server's. */
  append(events: NewEvent | NewEvent[]): Promise<Event[]>;
  getEvents(query?: EventQuery): Promise<Event[]>;
  getEvent(which: { offset: number } | { idempotencyKey: string }): Promise<Event | undefined>;
  head(): Promise<{ createdAt: string; maxOffset: number } | null>;
  waitForEvent(query: {
    afterOffset?: number;
    eventTypes?: string[];
    timeoutMs?: number;
  }): Promise<Event>;
  /** First what is there after `replayAfterOffset`, then what is appended, without a gap. */
  subscribe(options: {
    processEventBatch: (batch: EventBatch) => unknown;
    replayAfterOffset?: number;
    eventTypes?: string[];
  }): Promise<Subscription>;
}

export interface NewEvent {
  type: string;
  /** An object of at most 64 KiB. */
  payload?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  /** A second append under the same key appends nothing. */
  idempotencyKey?: string;
  /** The offset that the event must get. */
  offset?: number;
}

export interface Event {
  offset: number;
  type: string;
  payload: Record<string, unknown>;
  createdAt: string;
  metadata?: Record<string, unknown>;
  idempotencyKey?: string;
}

export interface EventQuery {
  afterOffset?: number;
  beforeOffset?: number;
  eventTypes?: string[];
  /** 1 to 500. */
  limit?: number;
  order?: "asc" | "desc";
}

export interface EventBatch {
  events: Event[];
}

/** Closing or disposing it ends the subscription. */
export interface Subscription extends RpcTarget {
  ping(): Promise<boolean>;
  close(): Promise<void>;
}

export interface StreamSummary {
  path: string;
  createdAt: string;
  maxOffset: number;
}
