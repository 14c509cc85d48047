/**
 * Requester of a request to a control interface, for the audit log. The name is the client's unverified claim about its
 * user; the credential and the address were seen by the server.
 */

import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { userInfo } from "node:os";
import type { AuditRequester } from "../ports/audit.ts";

const OPERATOR_HEADER = "x-hyperscale-operator";
const NAME_CHARACTERS_MAX = 128;
const FINGERPRINT_DIGITS = 8;

interface Caller {
  readonly headers: IncomingHttpHeaders;
  readonly socket: {
    readonly remoteAddress?: string | undefined;
    readonly remotePort?: number | undefined;
  };
}

/** Credential of requests: the token, by its fingerprint, or the loopback. */
export function credentialOf(token: string | null): string {
  return token === null ? "loopback" : `token:${fingerprintOf(token)}`;
}

/** `credential` is what admitted the request; empty for open routes. */
export function requesterOf({ headers, socket }: Caller, credential: string): AuditRequester {
  const said = headers[OPERATOR_HEADER];
  const name = typeof said === "string" ? said.slice(0, NAME_CHARACTERS_MAX) : "";
  const { remoteAddress = "", remotePort = 0 } = socket;
  const host = remoteAddress.includes(":") ? `[${remoteAddress}]` : remoteAddress;
  return {
    kind: "operator",
    name,
    credential,
    address: remoteAddress === "" ? "" : `${host}:${remotePort}`,
  };
}

/** Identifies tokens, also after they were changed, and reveals none. */
function fingerprintOf(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, FINGERPRINT_DIGITS);
}

/** Headers of our own commands about their user: HYPERSCALE_OPERATOR, or the user of the system. */
export function operatorHeaders(): Readonly<Record<string, string>> {
  const name = process.env["HYPERSCALE_OPERATOR"] ?? userName();
  return name === "" ? {} : { [OPERATOR_HEADER]: headerText(name) };
}

/** A name reduced to valid characters of a header. */
export function headerText(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, "?").slice(0, NAME_CHARACTERS_MAX);
}

/** A container may run as a user without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}
