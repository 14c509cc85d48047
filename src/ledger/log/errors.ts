/** Errors of a log on disk. The code is for programs, the message for people. */

type WalErrorCode =
  | "WAL_LOCKED"
  | "WAL_FOREIGN"
  | "WAL_UNWRITABLE"
  | "WAL_MISSING"
  | "WAL_CORRUPT"
  | "WAL_VERSION"
  | "WAL_IDENTITY"
  | "WAL_UNKNOWN_TYPE"
  | "WAL_COMPACTED"
  | "WAL_FAILED"
  | "WAL_FULL_DISK"
  | "QUEUE_FULL"
  | "TOO_LARGE"
  | "SHUTDOWN";

export class WalError extends Error {
  override readonly name = "WalError";
  readonly code: WalErrorCode;

  constructor(code: WalErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The code the system gave, or "EUNKNOWN". */
export function systemCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string")
    return error.code;
  return "EUNKNOWN";
}
