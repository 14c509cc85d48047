/** Tokens signed with a private key. (RFC 7519, RS256 of RFC 7518) */

import { type KeyObject, sign } from "node:crypto";

export function signedJwt(key: KeyObject, claims: Readonly<Record<string, unknown>>): string {
  const parts = [{ alg: "RS256", typ: "JWT" }, claims];
  const text = parts.map((part) => base64url(Buffer.from(JSON.stringify(part)))).join(".");
  return `${text}.${base64url(sign("RSA-SHA256", Buffer.from(text), key))}`;
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}
