/** What a refused call rejects with: an `Error` with these properties. */
export interface HutchError extends Error {
  /** Such as `SANDBOX_NOT_FOUND`. */
  code: string;
  /** Facts for programs. `origin: "sandbox"` says that it came from inside. */
  details: Record<string, unknown>;
  /** The status that an HTTP surface answers with. */
  httpStatus: number;
}

/** Whether something that was thrown is a refusal of the server's. */
export function isHutchError(error: unknown): error is HutchError {
  return error instanceof Error && typeof (error as Partial<HutchError>).code === "string";
}
