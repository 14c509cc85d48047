/**
 * Kinds of failure. Every failed call has exactly one. The list is short on purpose: users check it first, and each
 * kind must mean the same for every protocol.
 */

export const ERROR_KINDS = [
  /** The name of the target could not be resolved. */
  "dns",
  /** Nothing listens at the address, or the network rejects the connection. */
  "refused",
  /** The peer closed the connection before the response was complete. */
  "reset",
  /** Connecting, the first byte or the whole call took longer than its timeout. */
  "timeout",
  /** The TLS handshake or the certificate failed. */
  "tls",
  /** The response violated the protocol. */
  "protocol",
  /** A complete response with an error status: HTTP 400 and above, unless the step expects it. */
  "status",
  /** A complete response that carries an error: GraphQL errors, a failed custom result. */
  "application",
  /** This machine ran out of ports, descriptors or buffers. */
  "resources",
  /** The step's own code threw. */
  "exception",
  /**
   * The run ended first: the call was cut off at the end of the graceful stop although it was older than typical calls.
   */
  "unanswered",
] as const;

export type ErrorKind = (typeof ERROR_KINDS)[number];

export interface Failure {
  readonly kind: ErrorKind;
  /** Human-readable. */
  readonly text: string;
}

const BY_CODE: Readonly<Record<string, ErrorKind>> = {
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  EAI_FAIL: "dns",
  EAI_NODATA: "dns",
  EAI_NONAME: "dns",
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "refused",
  ENETUNREACH: "refused",
  EHOSTDOWN: "refused",
  ENOENT: "refused",
  EACCES: "refused",
  EPROXY: "refused",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ECONNABORTED: "reset",
  ETIMEDOUT: "timeout",
  EPROTO: "tls",
  EADDRNOTAVAIL: "resources",
  EADDRINUSE: "resources",
  EMFILE: "resources",
  ENFILE: "resources",
  ENOBUFS: "resources",
  ENOMEM: "resources",
};

/** Maps an error of Node's sockets to its kind. */
export function kindOfSocketError(error: unknown, duringTls: boolean): ErrorKind {
  const code = errorCode(error);
  const known = code === undefined ? undefined : BY_CODE[code];
  if (known !== undefined) return duringTls && known === "reset" ? "tls" : known;
  if (code?.startsWith("ERR_TLS") || code?.startsWith("ERR_SSL") || isCertificateCode(code)) {
    return "tls";
  }
  return duringTls ? "tls" : "reset";
}

function isCertificateCode(code: string | undefined): boolean {
  return code !== undefined && /CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME/.test(code);
}

export function errorCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
