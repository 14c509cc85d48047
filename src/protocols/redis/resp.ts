/** RESP, the protocol of Redis: encodes commands and defines the values of replies. */

/** An argument of a command, as users write it. */
export type RedisArgument = string | number | bigint | Uint8Array;

/** An error reply. */
export class RedisError {
  /** First word of its text: WRONGTYPE, NOAUTH, ERR. */
  readonly code: string;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
    this.code = /^[A-Z][A-Z0-9_]*(?= |$)/.exec(text)?.[0] ?? "ERR";
  }
}

/** A reply; strings stay bytes until they are read. */
export type RedisReply =
  | null
  | boolean
  | number
  | bigint
  | Buffer
  | RedisError
  | readonly RedisReply[]
  | ReadonlyMap<unknown, RedisReply>;

const CRLF = Buffer.from("\r\n");

/** Encodes one command as an array of bulk strings. Throws for an invalid argument. */
export function encodeCommand(words: readonly RedisArgument[]): Buffer {
  const parts: Uint8Array[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = bytesOf(word);
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, CRLF);
  }
  return Buffer.concat(parts);
}

function bytesOf(word: RedisArgument): Uint8Array {
  if (word instanceof Uint8Array) return word;
  const type = typeof word;
  if (type === "string" || type === "bigint" || (type === "number" && Number.isFinite(word)))
    return Buffer.from(String(word));
  throw new TypeError(
    `an argument of a Redis command is a text, a number or bytes, not ${word === null ? "null" : `${word}`}`,
  );
}
