/**
 * AWS Signature Version 4, as S3 and compatible stores require it. The signature covers method, path, query, the
 * given headers and the body, so none of them can be changed in transit.
 */

import { createHash, createHmac } from "node:crypto";

interface AwsCredentials {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly sessionToken?: string | undefined;
}

interface Signing {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly region: string;
  readonly service: string;
  readonly credentials: AwsCredentials;
  readonly at: Date;
}

/** Returns the headers to send: the given ones and those the signature adds. */
export function signedHeaders(signing: Signing): Readonly<Record<string, string>> {
  const { at, body, credentials, method, region, service, url } = signing;
  const stamp = at.toISOString().replace(/[:-]|\.\d{3}/g, "");
  const day = stamp.slice(0, 8);
  const bodyHash = sha256(body);
  const added = {
    host: url.host,
    "x-amz-date": stamp,
    ...(service === "s3" ? { "x-amz-content-sha256": bodyHash } : {}),
    ...(credentials.sessionToken === undefined
      ? {}
      : { "x-amz-security-token": credentials.sessionToken }),
  };
  const headers = lowerCased({ ...signing.headers, ...added });
  const names = Object.keys(headers).sort();
  const canonical = [
    method,
    canonicalPath(url.pathname, service),
    canonicalQuery(url.searchParams),
    ...names.map((name) => `${name}:${(headers[name] ?? "").trim().replace(/\s+/g, " ")}`),
    "",
    names.join(";"),
    bodyHash,
  ].join("\n");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n");
  const key = [day, region, service, "aws4_request"].reduce<Uint8Array>(
    (held, part) => hmac(held, part),
    Buffer.from(`AWS4${credentials.secretKey}`),
  );
  const signature = hmac(key, toSign).toString("hex");
  const credential = `${credentials.accessKey}/${scope}`;
  const parts = [
    `Credential=${credential}`,
    `SignedHeaders=${names.join(";")}`,
    `Signature=${signature}`,
  ];
  return { ...headers, authorization: `AWS4-HMAC-SHA256 ${parts.join(", ")}` };
}

/** S3 uses paths as they are; every other service expects them encoded once more. */
function canonicalPath(pathname: string, service: string): string {
  if (service === "s3") return pathname;
  return pathname.split("/").map(encoded).join("/");
}

function canonicalQuery(query: URLSearchParams): string {
  return [...query]
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1))
    .map((pair) => pair.join("="))
    .join("&");
}

/** Encodes the characters that JavaScript leaves alone and RFC 3986 reserves. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function sha256(data: Uint8Array | string): string {
  return createHash("sha256").update(data).digest("hex");
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
