/** Maps failures of HTTP/2 streams and connections to error kinds. */

import { errorText } from "../../core/base/error-text.ts";
import { type ErrorKind, errorCode, type Failure, kindOfSocketError } from "../errors.ts";
import * as frames from "./frames.ts";

/** Error codes of RFC 9113 §7, by number. */
const CODE_NAMES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

export const NO_HTTP2 = "the server does not offer HTTP/2 over TLS (ALPN)";

function nameOfCode(code: number): string {
  return CODE_NAMES[code] ?? `error code ${code}`;
}

function kindOfCode(code: number): ErrorKind {
  switch (code) {
    case frames.NO_ERROR:
    case frames.INTERNAL_ERROR:
    case frames.CANCEL:
    case frames.CONNECT_ERROR:
      return "reset";
    // The server could have answered and refused to.
    case frames.REFUSED_STREAM:
    case frames.ENHANCE_YOUR_CALM:
      return "refused";
    case frames.INADEQUATE_SECURITY:
      return "tls";
    default:
      return "protocol";
  }
}

/** Failure of a stream that the server has reset. */
export function resetFailure(code: number): Failure {
  return { kind: kindOfCode(code), text: `the stream was reset with ${nameOfCode(code)}` };
}

export const CLOSED: Failure = { kind: "reset", text: "the server closed the connection" };

export function goawayFailure(code: number): Failure {
  return { kind: kindOfCode(code), text: `the server closed with GOAWAY ${nameOfCode(code)}` };
}

/** Failure of the socket or of TLS. */
export function connectionFailure(error: unknown, duringTls: boolean): Failure {
  if (errorCode(error)?.includes("NO_APPLICATION_PROTOCOL"))
    return { kind: "protocol", text: NO_HTTP2 };
  return { kind: kindOfSocketError(error, duringTls), text: errorText(error) };
}
