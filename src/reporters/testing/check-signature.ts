/** Verifies AWS signatures, which some emulators skip. */

import { signedHeaders } from "../cloud/sigv4.ts";
import type { StubRequest } from "./stub-server.ts";

export const ACCESS_KEY = "AKIDEXAMPLE";

export function isSigned(
  { body, headers, method, path }: StubRequest,
  url: string,
  secretKey: string,
): boolean {
  const sent = headers.authorization ?? "";
  const names = (/SignedHeaders=([^,]*)/.exec(sent)?.[1] ?? "").split(";");
  const [, region = "", service = ""] = /\/([\w-]+)\/(\w+)\/aws4_request/.exec(sent) ?? [];
  const stamp = String(headers["x-amz-date"]);
  const iso = stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  const wanted = signedHeaders({
    ...{ method, body, region, service, at: new Date(iso), url: new URL(path, url) },
    headers: Object.fromEntries(names.map((name) => [name, String(headers[name] ?? "")])),
    credentials: { accessKey: ACCESS_KEY, secretKey },
  });
  return wanted["authorization"] === sent;
}
