/** Splits the content of a stream into messages: a flag, a length, then that many bytes. */

const PREFIX_BYTES = 5;

export class MessageReader {
  /** Complete messages in order of arrival; empty ones when no caller reads them. */
  readonly messages: Buffer[] = [];
  /** First violation of the format; null so far. */
  problem: string | null = null;
  readonly #bytesMax: number;
  readonly #keeps: boolean;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  #message: Buffer = NOTHING;
  #filled = 0;
  #left = 0;
  #total = 0;

  constructor(bytesMax: number, keeps: boolean) {
    this.#bytesMax = bytesMax;
    this.#keeps = keeps;
  }

  /** True when no message is partially read. */
  get between(): boolean {
    return this.#prefixBytes === 0;
  }

  /** Consumes bytes[from, end); returns false when they are malformed. */
  read(bytes: Buffer, from: number, end: number): boolean {
    let at = from;
    while (at < end || (this.#prefixBytes === PREFIX_BYTES && this.#left === 0)) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        const count = Math.min(PREFIX_BYTES - this.#prefixBytes, end - at);
        bytes.copy(this.#prefix, this.#prefixBytes, at, at + count);
        this.#prefixBytes += count;
        at += count;
        if (this.#prefixBytes === PREFIX_BYTES && !this.#begin()) return false;
        continue;
      }
      const count = Math.min(this.#left, end - at);
      if (this.#keeps) bytes.copy(this.#message, this.#filled, at, at + count);
      this.#filled += count;
      this.#left -= count;
      at += count;
      if (this.#left > 0) continue;
      this.messages.push(this.#message);
      this.#message = NOTHING;
      this.#prefixBytes = 0;
    }
    return true;
  }

  #begin(): boolean {
    const flag = this.#prefix[0] ?? 0;
    const length = this.#prefix.readUInt32BE(1);
    this.#total += length;
    if (flag !== 0)
      this.problem = flag === 1 ? "a compressed message, which was not requested" : "no message";
    else if (this.#total > this.#bytesMax)
      this.problem = `messages of more than ${this.#bytesMax} bytes (bodyBytesMax)`;
    else {
      this.#left = length;
      this.#filled = 0;
      if (this.#keeps) this.#message = Buffer.allocUnsafe(length);
    }
    return this.problem === null;
  }
}

const NOTHING = Buffer.alloc(0);

/** Encodes messages as the content of a request. */
export function withPrefixes(messages: readonly Uint8Array[]): Buffer {
  const length = messages.reduce((sum, message) => sum + PREFIX_BYTES + message.length, 0);
  const content = Buffer.allocUnsafe(length);
  let at = 0;
  for (const message of messages) {
    content[at] = 0;
    content.writeUInt32BE(message.length, at + 1);
    content.set(message, at + PREFIX_BYTES);
    at += PREFIX_BYTES + message.length;
  }
  return content;
}
