/** Errors returned to callers, with their JSON-RPC numbers. Codes are never reused. */

export const ERROR_CODES = {
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL: -32603,
  NOT_LEADER: -32001,
  NOT_FOUND: -32002,
  CONFLICT: -32003,
  UNAVAILABLE: -32004,
  OVERLOADED: -32005,
  UNAUTHORIZED: -32006,
  READ_ONLY: -32007,
  LEASE_REFUSED: -32008,
  NODE_UNKNOWN: -32009,
  TOO_LARGE: -32010,
  NO_LEADER: -32011,
  FORBIDDEN: -32012,
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  "NOT_LEADER",
  "UNAVAILABLE",
  "OVERLOADED",
  "NO_LEADER",
]);

/** Permanent errors of the call or the item: the same call will never be accepted. */
const FINAL: ReadonlySet<ErrorCode> = new Set([
  "PARSE_ERROR",
  "INVALID_REQUEST",
  "METHOD_NOT_FOUND",
  "INVALID_PARAMS",
  "NOT_FOUND",
  "TOO_LARGE",
  "FORBIDDEN",
]);

export class QueueError extends Error {
  override readonly name = "QueueError";
  readonly code: ErrorCode;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly data?: Readonly<Record<string, unknown>>; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data;
  }

  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }

  /** Whether repeating the call unchanged cannot succeed. */
  get final(): boolean {
    return FINAL.has(this.code);
  }
}

export function codeOfNumber(number: number): ErrorCode {
  for (const [name, value] of Object.entries(ERROR_CODES)) {
    if (value === number) return name as ErrorCode;
  }
  return "INTERNAL";
}

/** The database is unreachable, or ended the statement in a way that allows a retry. */
export class DatabaseUnavailable extends Error {
  override readonly name = "DatabaseUnavailable";
}
