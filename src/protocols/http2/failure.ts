/** What went wrong with a stream or a connection of HTTP/2, as one of our kinds. */

import { constants } from "node:http2";
import { errorText } from "../../core/base/error-text.ts";
import { type ErrorKind, errorCode, type Failure, kindOfSocketError } from "../errors.ts";

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
    case constants.NGHTTP2_NO_ERROR:
    case constants.NGHTTP2_INTERNAL_ERROR:
    case constants.NGHTTP2_CANCEL:
    case constants.NGHTTP2_CONNECT_ERROR:
      return "reset";
    // The server could have answered and did not want to.
    case constants.NGHTTP2_REFUSED_STREAM:
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return "refused";
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return "tls";
    default:
      return "protocol";
  }
}

/** Why a stream closed: its own reset, or the error that took its connection along. */
export function failureOf(code: number, error: unknown, connectionEnded: boolean): Failure {
  if (error !== null && errorCode(error) !== "ERR_HTTP2_STREAM_ERROR")
    return connectionFailure(error, false);
  return connectionEnded
    ? CLOSED
    : { kind: kindOfCode(code), text: `the stream was reset with ${nameOfCode(code)}` };
}

export const CLOSED: Failure = { kind: "reset", text: "the server closed the connection" };

export function goawayFailure(code: number): Failure {
  return { kind: kindOfCode(code), text: `the server closed with GOAWAY ${nameOfCode(code)}` };
}

/** An error of the socket, of TLS, or of the frames that came. */
export function connectionFailure(error: unknown, duringTls: boolean): Failure {
  const code = errorCode(error);
  // nghttp2 itself could not read what came.
  if (code === "ERR_HTTP2_ERROR") {
    return { kind: "protocol", text: `the server does not keep to HTTP/2: ${errorText(error)}` };
  }
  if (code?.includes("NO_APPLICATION_PROTOCOL")) return { kind: "protocol", text: NO_HTTP2 };
  if (code?.startsWith("ERR_HTTP2")) return { kind: "protocol", text: errorText(error) };
  return { kind: kindOfSocketError(error, duringTls), text: errorText(error) };
}
