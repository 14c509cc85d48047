/**
 * Secrets of one traced iteration. A value that a header or field declares secret is masked wherever it occurs again:
 * in an answer that echoes the request, in a URL, under a harmless name.
 */

import { maskSecrets } from "../core/base/mask-credentials.ts";

const SECRET_HEADER =
  /^(?:(?:proxy-)?authorization|(?:set-)?cookie|[\w-]*(?:token|secret|password|api-?key)[\w-]*): *([^\r\n]*)/gim;
const SECRET_PROPERTY =
  /"[^"]{0,64}(?:token|password|passwd|secret|api[-_]?key|session)[^"]{0,64}"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.)*)"/gi;
const HEADER_NAMES =
  /^((?:proxy-)?authorization|(?:set-)?cookie|[\w-]*(?:token|secret|password|api-?key)[\w-]*): *[^\r\n]*/gim;

/** Shorter values occur by chance in any text. */
const SECRET_LENGTH_MIN = 6;
/** Values kept; an iteration has a handful. */
const SECRETS_MAX = 1_000;

export class TraceSecrets {
  readonly #values = new Set<string>();

  /** Remembers the secret values of a request or an answer. */
  learn(text: string): void {
    for (const [, value = ""] of text.matchAll(SECRET_HEADER)) this.#header(value);
    for (const [, value = ""] of text.matchAll(SECRET_PROPERTY)) this.#add(value);
  }

  mask(text: string): string {
    // Longest first: one may contain another.
    const values = [...this.#values].sort((a, b) => b.length - a.length);
    const known = values.reduce((masked, value) => masked.replaceAll(value, "***"), text);
    return maskSecrets(known.replace(HEADER_NAMES, "$1: ***"));
  }

  /** "Bearer abc" is stored without its scheme, "id=abc; Path=/" by its first value. */
  #header(value: string): void {
    this.#add(/^\w+ (.+)$/.exec(value.trim())?.[1] ?? value.trim());
    for (const part of value.split(";")) this.#add(/^\s*[^=\s]+=(.*)$/.exec(part)?.[1] ?? "");
  }

  #add(value: string): void {
    if (value.length >= SECRET_LENGTH_MIN && this.#values.size < SECRETS_MAX)
      this.#values.add(value);
  }
}
