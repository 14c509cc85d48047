/** A decoded header block, checked once: servers send the same block repeatedly. */

export interface DecodedField {
  readonly name: string;
  readonly value: string;
  /** Contains what RFC 9113 §8.2 forbids. */
  readonly malformed: boolean;
}

/** Fields about one connection; HTTP/2 forbids them (RFC 9113 §8.2.2). */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

const FIELD_NAME = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;
const FORBIDDEN_IN_VALUES = /[\0\r\n]/;
const NO_LINES: readonly string[] = [];

export function decodedField(name: string, value: string): DecodedField {
  const malformed =
    !FIELD_NAME.test(name) || FORBIDDEN_IN_VALUES.test(value) || CONNECTION_FIELDS.has(name);
  return { name, value, malformed };
}

export class HeaderList {
  /** Status of a response; 0 in trailers. */
  readonly status: number;
  /** -1 when none is given. */
  readonly contentLength: number;
  readonly location: string | null;
  readonly setCookies: readonly string[];
  /** All fields except those that begin with ":". */
  readonly lines: readonly (readonly [string, string])[];
  /** Violated rule; null for a valid block. */
  readonly problem: string | null;

  constructor(fields: readonly DecodedField[]) {
    const lines: (readonly [string, string])[] = [];
    let status = 0;
    let contentLength = -1;
    let location: string | null = null;
    let setCookies: string[] | null = null;
    let problem: string | null = null;
    for (const { name, value, malformed } of fields) {
      if (malformed) problem ??= "a header that HTTP/2 does not allow";
      if (name.startsWith(":")) {
        if (name !== ":status" || lines.length > 0 || status !== 0 || !/^[1-9]\d\d$/.test(value))
          problem ??= "an answer without a valid status";
        else status = Number(value);
        continue;
      }
      lines.push([name, value]);
      if (name === "location") location ??= value;
      else if (name === "set-cookie") {
        setCookies ??= [];
        setCookies.push(value);
      } else if (name === "content-length") {
        const length = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
        if (Number.isNaN(length) || (contentLength >= 0 && contentLength !== length))
          problem ??= "a content-length that is not a number";
        else contentLength = length;
      }
    }
    this.status = status;
    this.contentLength = contentLength;
    this.location = location;
    this.setCookies = setCookies ?? NO_LINES;
    this.lines = lines;
    this.problem = problem;
  }
}
