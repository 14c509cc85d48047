/** Maps WebSocket failures to error kinds. */

import { errorText } from "../../core/base/error-text.ts";
import { errorCode, type Failure, kindOfSocketError } from "../errors.ts";

/** Socket errors have Node's codes; protocol violations have those of ws and of the HTTP parser. */
export function failureOfError(error: unknown, duringTls: boolean): Failure {
  const code = errorCode(error);
  const text = errorText(error);
  const brokeRules = code?.startsWith("WS_ERR") || code?.startsWith("HPE_");
  // Errors of the opening handshake have no code at all.
  if (brokeRules || (code === undefined && !duringTls)) return { kind: "protocol", text };
  return { kind: kindOfSocketError(error, duringTls), text };
}

/** The handshake was answered without a protocol switch. */
export function failureOfStatus(status: number): Failure {
  return status >= 400
    ? { kind: "status", text: `the server refused the handshake with status ${status}` }
    : { kind: "protocol", text: `the server does not speak WebSocket here (status ${status})` };
}

/** The connection closed while a call was waiting. Codes of RFC 6455 §7.4. */
export function failureOfClose(code: number, reason: string): Failure {
  const why = reason === "" ? "" : `: ${reason.slice(0, 120)}`;
  const text = `the connection was closed (code ${code}${why})`;
  switch (code) {
    case 1002:
    case 1003:
    case 1007:
    case 1009:
    case 1010:
      return { kind: "protocol", text };
    // The server refuses to continue.
    case 1008:
    case 1013:
      return { kind: "refused", text };
    default:
      return { kind: "reset", text };
  }
}
