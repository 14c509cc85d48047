/** The static table of HPACK (RFC 7541, appendix A). Entry 1 is the first. */

const NAMES_ONLY = [
  ...["accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age", "allow"],
  ...["authorization", "cache-control", "content-disposition", "content-encoding"],
  ...["content-language", "content-length", "content-location", "content-range", "content-type"],
  ...["cookie", "date", "etag", "expect", "expires", "from", "host", "if-match"],
  ...["if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified"],
  ...["link", "location", "max-forwards", "proxy-authenticate", "proxy-authorization", "range"],
  ...["referer", "refresh", "retry-after", "server", "set-cookie", "strict-transport-security"],
  ...["transfer-encoding", "user-agent", "vary", "via", "www-authenticate"],
];

export type Field = readonly [name: string, value: string];

export const STATIC_TABLE: readonly Field[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ...NAMES_ONLY.map((name): Field => [name, ""]),
];

/** Returns the first entry with this name; 0 when there is none. */
export function staticName(name: string): number {
  return firstByName.get(name) ?? 0;
}

/** Returns the entry with this name and value; 0 when there is none. */
export function staticField(name: string, value: string): number {
  return byField.get(`${name}\0${value}`) ?? 0;
}

const firstByName = new Map<string, number>();
const byField = new Map<string, number>();
for (const [at, [name, value]] of STATIC_TABLE.entries()) {
  if (!firstByName.has(name)) firstByName.set(name, at + 1);
  byField.set(`${name}\0${value}`, at + 1);
}
