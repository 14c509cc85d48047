/**
 * Responses kept until they are read. A small one is a single string of its bytes, the cheapest representation to
 * create and to discard; it becomes a buffer only on access.
 */

import type { BodyCollector } from "../http/body-collector.ts";
import type { DecodedOwner } from "../http/decoded-bodies.ts";
import { type KeptAnswer, splitHeaderLines } from "../http/response.ts";

/** Above this size, copying bytes is cheaper than creating a string. */
export const TEXT_BYTES_MAX = 4 * 1024;

/** Settings of the exchange that apply to its response. */
export interface Keeping {
  readonly bodyBytesMax: number;
  readonly keepsBody: boolean;
  readonly owner: DecodedOwner;
}

const ASCII = /^[\x00-\x7f]*$/;
const ENCODED = /\r\ncontent-encoding[ \t]*:/i;
/** The last response that was read as text, with that text: responses repeat. */
let lastText = "";
let lastPlain: string | null = null;

/** Head and body in one latin1 string, which preserves every byte. */
export class TextAnswer implements KeptAnswer {
  readonly tooLong = false;
  readonly bodyBytesMax: number;
  readonly owner: DecodedOwner;
  readonly #text: string;
  readonly #headLength: number;
  readonly #hasBody: boolean;

  constructor(text: string, headLength: number, { bodyBytesMax, keepsBody, owner }: Keeping) {
    this.#text = text;
    this.#headLength = headLength;
    this.#hasBody = keepsBody;
    this.bodyBytesMax = bodyBytesMax;
    this.owner = owner;
  }

  readHeaders(): readonly (readonly [string, string])[] {
    return splitHeaderLines(this.#text.slice(0, this.#headLength));
  }

  get plainText(): string | null {
    if (!this.#hasBody) return null;
    if (this.#text !== lastText) {
      const body = this.#text.slice(this.#headLength);
      const head = this.#text.slice(0, this.#headLength);
      lastText = this.#text;
      lastPlain = ASCII.test(body) && !ENCODED.test(head) ? body : null;
    }
    return lastPlain;
  }

  get body(): Buffer | null {
    return this.#hasBody ? Buffer.from(this.#text.slice(this.#headLength), "latin1") : null;
  }
}

/** A head, and a body that was copied or arrived in pieces; null when it was not to be kept. */
export class PiecedAnswer implements KeptAnswer {
  readonly bodyBytesMax: number;
  readonly owner: DecodedOwner;
  readonly #head: string;
  readonly #body: Buffer | BodyCollector | null;
  readonly #keepsBody: boolean;

  constructor(
    head: string,
    body: Buffer | BodyCollector | null,
    { bodyBytesMax, keepsBody, owner }: Keeping,
  ) {
    this.#head = head;
    this.#body = body;
    this.#keepsBody = keepsBody;
    this.bodyBytesMax = bodyBytesMax;
    this.owner = owner;
  }

  readHeaders(): readonly (readonly [string, string])[] {
    return splitHeaderLines(this.#head);
  }

  get body(): Buffer | null {
    return this.#body === null || Buffer.isBuffer(this.#body) ? this.#body : this.#body.take();
  }

  get tooLong(): boolean {
    return this.#keepsBody && this.body === null;
  }
}
