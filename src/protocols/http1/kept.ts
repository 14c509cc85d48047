/**
 * Answers as they are kept until somebody looks. A small one is a single string of its bytes, which is
 * the cheapest thing there is to make and to forget; bytes become a buffer only when they are read.
 */

import type { BodyCollector } from "../http/body-collector.ts";
import type { DecodedOwner } from "../http/decoded-bodies.ts";
import { type KeptAnswer, splitHeaderLines } from "../http/response.ts";

/** Beyond this, copying bytes is cheaper than making a string of them. */
export const TEXT_BYTES_MAX = 4 * 1024;

/** What an answer needs to know of the exchange that it came by. */
export interface Keeping {
  readonly bodyBytesMax: number;
  readonly keepsBody: boolean;
  readonly owner: DecodedOwner;
}

const ASCII = /^[\x00-\x7f]*$/;
const ENCODED = /\r\ncontent-encoding[ \t]*:/i;
/** The last answer that was read as text, and that text: answers repeat themselves. */
let lastText = "";
let lastPlain: string | null = null;

/** Head and body in one latin1 string, which holds every byte as it came. */
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

/** A head, and a body that was copied or came in pieces; null when it was not to be kept. */
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
