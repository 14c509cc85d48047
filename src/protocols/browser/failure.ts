/** What Chromium and Playwright say when something goes wrong, in the words of this house. */

import { errorText } from "../../core/base/error-text.ts";
import type { ErrorKind } from "../errors.ts";
import type { ConnectionFailure } from "../target/connection.ts";

/** Chromium's names of network errors (net_error_list.h), by how they begin; the first that fits. */
const KINDS: readonly (readonly [RegExp, ErrorKind])[] = [
  [/^ERR_(NAME_|DNS_|ICANN_)/, "dns"],
  [/^ERR_(CERT_|SSL_|BAD_SSL|TLS|QUIC_HANDSHAKE)/, "tls"],
  [/TIMED_OUT$/, "timeout"],
  [/^ERR_(CONNECTION_REFUSED|ADDRESS_|INTERNET_|NETWORK_ACCESS|TUNNEL_|PROXY_)/, "refused"],
  [/^ERR_(CONNECTION_FAILED|BLOCKED_BY|UNSAFE_PORT|DISALLOWED)/, "refused"],
  [/^ERR_(CONNECTION_|EMPTY_|CONTENT_LENGTH|INCOMPLETE_|NETWORK_CHANGED|SOCKET_)/, "reset"],
  [/^ERR_(INSUFFICIENT|OUT_OF|NO_BUFFER)/, "resources"],
];

/** Of an answer that had begun. */
const IN_MID_ANSWER = /^ERR_(CONTENT_LENGTH|INCOMPLETE_)/;

/** A navigation that failed: its kind, and Chromium's own name for it as the code. */
export function navigationFailure(name: string): ConnectionFailure {
  const kind = KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? "protocol";
  const when = IN_MID_ANSWER.test(name) ? " in mid-answer" : "";
  return { kind, code: name, text: `the page did not open: ${name}${when}` };
}

/** "ERR_CONNECTION_REFUSED" of what was thrown, or null. */
export function networkErrorOf(error: unknown): string | null {
  const text = errorText(error);
  // What Chromium shows instead of a page has replaced it, and the reason is told to nobody.
  if (text.includes("chrome-error://")) return "ERR_FAILED";
  return /net::(ERR_[A-Z0-9_]+)/.exec(text)?.[1] ?? null;
}

/** Why something that concerns an element of the page was not done; null for other reasons. */
export function elementRefusal(
  error: unknown,
  selector: string,
  waitedMs: number,
): { readonly code: string; readonly text: string } | null {
  const text = errorText(error);
  if (text.includes("strict mode violation"))
    return { code: "ELEMENT_AMBIGUOUS", text: `several elements are ${selector}` };
  if (!(error instanceof Error) || error.name !== "TimeoutError") return null;
  const found = /locator resolved to/.test(text);
  return found
    ? { code: "ELEMENT_NOT_READY", text: `${selector} could not be used within ${waitedMs} ms` }
    : { code: "ELEMENT_ABSENT", text: `no element is ${selector} within ${waitedMs} ms` };
}
