import type { RpcTarget } from "capnweb";
import type { Sandbox, SandboxSummary } from "./sandbox.js";
import type { EventStream, StreamSummary } from "./streams.js";

/** What a connection offers before anybody has authenticated. */
export interface Entry extends RpcTarget {
  /** Rejects with `UNAUTHENTICATED` for a token that is not valid. */
  authenticate(credentials: { type: "bearer"; token: string }): Promise<Session>;
}

/** What an authenticated caller reaches. */
export interface Session extends RpcTarget {
  whoami(): Promise<Identity>;
  readonly projects: Projects;
  /** For the admin key alone. */
  readonly keys: Keys;
}

/** Whose token it is, and the ids of the projects that it opens. */
export interface Identity {
  type: "admin" | "key";
  key?: string;
  projects: "all" | string[];
}

export interface Projects extends RpcTarget {
  list(): Promise<Project[]>;
  /** Addresses a project; costs no round trip when it is not awaited. */
  get(slugOrId: string): Promise<Itx>;
  create(options: { slug: string }): Promise<Itx>;
}

export interface Project {
  id: string;
  slug: string;
  createdAt: string;
}

export interface Keys extends RpcTarget {
  /** `expiresIn` is `<n>s`, `<n>m`, `<n>h` or `<n>d`. The token is told this once. */
  create(options?: {
    project?: string;
    label?: string;
    expiresIn?: string;
  }): Promise<Key & { token: string }>;
  list(): Promise<Key[]>;
  /** Also closes the connections that were opened with it. */
  revoke(id: string): Promise<Key>;
}

export interface Key {
  id: string;
  label: string | null;
  project: string | null;
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  revokedAt: string | null;
  valid: boolean;
}

/** One project. */
export interface Itx extends RpcTarget {
  readonly projectId: string;
  readonly slug: string;
  readonly sandboxes: Sandboxes;
  readonly streams: Streams;
}

export interface Sandboxes extends RpcTarget {
  /** Addresses a sandbox, `/sandboxes/<name>`. Makes nothing. */
  get(path: string): Promise<Sandbox>;
  list(): Promise<SandboxSummary[]>;
}

export interface Streams extends RpcTarget {
  /** Addresses a stream. Makes nothing. */
  get(path: string): Promise<EventStream>;
  list(): Promise<StreamSummary[]>;
}
