/** Tokens of a GraphQL document (spec of September 2025, §2.1), produced one at a time. */

type TokenKind = "punctuator" | "name" | "number" | "string" | "end";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  /** Offset of its first character in the document. */
  readonly at: number;
}

export class GraphqlSyntaxError extends Error {
  override readonly name = "GraphqlSyntaxError";

  constructor(document: string, at: number, problem: string) {
    const before = document.slice(0, at).split(/\r\n|\n|\r/);
    const column = (before.at(-1)?.length ?? 0) + 1;
    super(`the GraphQL document is wrong at line ${before.length}, column ${column}: ${problem}`);
  }
}

// White space, commas, comments and the byte order mark separate tokens and have no meaning.
const IGNORED = /(?:[\uFEFF \t\r\n,]+|#[^\r\n]*)*/y;
const PUNCTUATOR = /[!$&()[\]{}:=@|]|\.\.\./y;
const NAME = /[_A-Za-z][_0-9A-Za-z]*/y;
// A number must not be followed by a character that could continue it.
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![_0-9A-Za-z.])/y;
const BLOCK_STRING = /"""(?:[^"\\]|\\"""|\\(?!""")|"{1,2}(?!"))*"""/y;
const STRING = /"(?:[^"\\\r\n]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}))*"/y;

export class Lexer {
  readonly #document: string;
  #at = 0;

  constructor(document: string) {
    this.#document = document;
  }

  next(): Token {
    this.#match(IGNORED);
    const at = this.#at;
    if (at >= this.#document.length) return { kind: "end", text: "the end", at };
    const found =
      this.#token("punctuator", PUNCTUATOR) ??
      this.#token("name", NAME) ??
      this.#token("number", NUMBER) ??
      this.#token("string", this.#document.startsWith('"""', at) ? BLOCK_STRING : STRING);
    if (found !== null) return found;
    throw new GraphqlSyntaxError(this.#document, at, this.#complaint(at));
  }

  #token(kind: TokenKind, pattern: RegExp): Token | null {
    const at = this.#at;
    const text = this.#match(pattern);
    return text === null ? null : { kind, text, at };
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#document)?.[0];
    if (text === undefined) return null;
    this.#at += text.length;
    return text;
  }

  #complaint(at: number): string {
    const character = String.fromCodePoint(this.#document.codePointAt(at) ?? 0);
    if (character === '"') return "a string is not closed, or contains an invalid character";
    if (/[-0-9]/.test(character)) return "this is not a valid number";
    return `${JSON.stringify(character)} has no meaning here`;
  }
}
