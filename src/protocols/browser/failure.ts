/** Translates errors of Chromium and Playwright into error kinds. */

import { errorText } from "../../core/base/error-text.ts";
import type { ErrorKind } from "../errors.ts";
import type { ConnectionFailure } from "../target/connection.ts";

/** Chromium's names of network errors (net_error_list.h) by prefix; the first match wins. */
const KINDS: readonly (readonly [RegExp, ErrorKind])[] = [
  [/^ERR_(NAME_|DNS_|ICANN_)/, "dns"],
  [/^ERR_(CERT_|SSL_|BAD_SSL|TLS|QUIC_HANDSHAKE)/, "tls"],
  [/TIMED_OUT$/, "timeout"],
  [/^ERR_(CONNECTION_REFUSED|ADDRESS_|INTERNET_|NETWORK_ACCESS|TUNNEL_|PROXY_)/, "refused"],
  [/^ERR_(CONNECTION_FAILED|BLOCKED_BY|UNSAFE_PORT|DISALLOWED)/, "refused"],
  [/^ERR_(CONNECTION_|EMPTY_|CONTENT_LENGTH|INCOMPLETE_|NETWORK_CHANGED|SOCKET_)/, "reset"],
  [/^ERR_(INSUFFICIENT|OUT_OF|NO_BUFFER)/, "resources"],
];

/** Errors after the response had begun. */
const IN_MID_ANSWER = /^ERR_(CONTENT_LENGTH|INCOMPLETE_)/;

/** Failure of a navigation: its kind, with Chromium's name of the error as the code. */
export function navigationFailure(name: string): ConnectionFailure {
  const kind = KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? "protocol";
  const when = IN_MID_ANSWER.test(name) ? " in mid-answer" : "";
  return { kind, code: name, text: `the page did not open: ${name}${when}` };
}

/** Extracts a name such as "ERR_CONNECTION_REFUSED" from a thrown error, or null. */
export function networkErrorOf(error: unknown): string | null {
  const text = errorText(error);
  // Chromium's error page has replaced the document, and the reason is lost.
  if (text.includes("chrome-error://")) return "ERR_FAILED";
  return /net::(ERR_[A-Z0-9_]+)/.exec(text)?.[1] ?? null;
}

/** Reason why an action on an element was refused; null for other errors. */
export function elementRefusal(
  error: unknown,
  selector: string,
  waitedMs: number,
): { readonly code: string; readonly text: string } | null {
  const text = errorText(error);
  if (text.includes("strict mode violation"))
    return { code: "ELEMENT_AMBIGUOUS", text: `several elements match ${selector}` };
  if (!(error instanceof Error) || error.name !== "TimeoutError") return null;
  const found = /locator resolved to/.test(text);
  return found
    ? { code: "ELEMENT_NOT_READY", text: `${selector} could not be used within ${waitedMs} ms` }
    : { code: "ELEMENT_ABSENT", text: `no element matches ${selector} within ${waitedMs} ms` };
}
