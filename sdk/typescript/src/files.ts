/** What every answer about a path has. */
export interface PathResult {
  success: true;
  path: string;
  timestamp: string;
}

export interface ReadResult extends PathResult {
  content: string;
  encoding: "utf-8" | "base64";
  /** Whether the content is base64, since it is no UTF-8. */
  isBinary: boolean;
  size: number;
  mimeType: string;
}

export interface FileInfo {
  name: string;
  absolutePath: string;
  relativePath: string;
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  modifiedAt: string;
  mode: string;
}

/** Files of a sandbox. Relative paths start at `/workspace`. */
export interface FileMethods {
  /** Text, or base64 for what is no UTF-8; at most 32 MiB. `readTar` has no such limit. */
  readFile(path: string, options?: { encoding?: "utf-8" | "base64" }): Promise<ReadResult>;
  /** Server-sent events. */
  readFileStream(path: string): Promise<ReadableStream<Uint8Array>>;
  /** Whole or not at all. */
  writeFile(
    path: string,
    content: string | Uint8Array | ReadableStream<Uint8Array>,
    options?: { encoding?: "utf-8" | "base64" },
  ): Promise<PathResult & { bytesWritten: number }>;
  mkdir(
    path: string,
    options?: { recursive?: boolean },
  ): Promise<PathResult & { recursive: boolean }>;
  listFiles(
    path: string,
    options?: { recursive?: boolean; includeHidden?: boolean },
  ): Promise<PathResult & { files: FileInfo[]; count: number }>;
  exists(path: string): Promise<PathResult & { exists: boolean }>;
  renameFile(path: string, to: string): Promise<PathResult & { newPath: string }>;
  moveFile(path: string, to: string): Promise<PathResult & { newPath: string }>;
  deleteFile(path: string): Promise<PathResult>;
  /** A tar archive of `a/b` itself, or of what is in it for `a/b/.`. */
  readTar(path: string, options?: { followLink?: boolean }): Promise<ReadableStream<Uint8Array>>;
  /**
   * Unpacks a tar archive: into the directory `path`, or, with `place: "as"`, as a copy of
   * the one thing that it holds.
   */
  writeTar(
    path: string,
    archive: ReadableStream<Uint8Array>,
    options?: { place?: "into" | "as"; keepOwners?: boolean },
  ): Promise<{ entries: number; bytes: number }>;
}
