/** Splits the text of a threshold into its parts, each with its position. */

import type { ThresholdOp } from "./threshold.ts";

interface Piece {
  readonly text: string;
  readonly at: number;
}

interface PathSegment extends Piece {
  readonly quoted: boolean;
}

type Parts =
  | {
      readonly ok: true;
      readonly path: readonly PathSegment[];
      /** Segments before the braces; null without tags. */
      readonly tagsAfter: number | null;
      readonly tags: Readonly<Record<string, string>>;
      readonly over: Piece | null;
      readonly op: ThresholdOp;
      readonly value: Piece;
    }
  | { readonly ok: false; readonly problem: string; readonly at: number };

const OPS: readonly ThresholdOp[] = ["<=", ">=", "==", "!=", "<", ">"];
const NAME = /[^\s.{}<>=!",]/;

export class Scanner {
  readonly #text: string;
  #at = 0;
  #problem: { readonly problem: string; readonly at: number } | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Parts {
    this.#spaces();
    const { path, tagsAfter, tags } = this.#path();
    this.#spaces();
    const over = this.#over();
    this.#spaces();
    const op = this.#op();
    this.#spaces();
    const value = { text: this.#text.slice(this.#at).trim(), at: this.#at };
    if (this.#problem === null && value.text === "") {
      this.#fail(`a value is missing after "${op}"`);
    }
    if (this.#problem !== null) return { ok: false, ...this.#problem };
    return { ok: true, path: joinPercentile(path), tagsAfter, tags, over, op: op ?? "<", value };
  }

  #path(): { path: PathSegment[]; tagsAfter: number | null; tags: Record<string, string> } {
    const path: PathSegment[] = [];
    let tagsAfter: number | null = null;
    let tags: [string, string][] = [];
    while (this.#problem === null) {
      path.push(this.#name("a metric, such as latency.p99"));
      if (this.#peek() === "{") {
        if (tagsAfter !== null) this.#fail("tags are given once");
        tagsAfter = path.length;
        tags = this.#tags();
      }
      if (this.#peek() !== ".") break;
      this.#at++;
    }
    return { path, tagsAfter, tags: Object.fromEntries(tags) };
  }

  #tags(): [string, string][] {
    const tags: [string, string][] = [];
    this.#at++;
    this.#spaces();
    while (this.#problem === null && this.#peek() !== "}") {
      const key = this.#name("a tag, such as step=login");
      this.#spaces();
      if (key.text === "ok" && !key.quoted && /[,}]/.test(this.#peek())) {
        tags.push(["ok", "true"]);
        if (this.#peek() === ",") this.#at++;
        this.#spaces();
        continue;
      }
      if (this.#peek() !== "=") this.#fail(`"=" and a value must follow the tag "${key.text}"`);
      this.#at++;
      this.#spaces();
      tags.push([key.text, this.#tagValue()]);
      this.#spaces();
      if (this.#peek() === ",") this.#at++;
      else if (this.#peek() !== "}") this.#fail('tags end with "}"');
      this.#spaces();
    }
    this.#at++;
    return tags;
  }

  /** Like a name, but dots need no quotes: {host=api.example.com}. */
  #tagValue(): string {
    if (this.#peek() === '"') return this.#name("a value").text;
    let value = "";
    while (this.#peek() !== "" && (NAME.test(this.#peek()) || this.#peek() === ".")) {
      value += this.#peek();
      this.#at++;
    }
    if (value === "") this.#fail("a tag has a value: {step=login}");
    return value;
  }

  #name(what: string): PathSegment {
    const at = this.#at;
    if (this.#peek() === '"') {
      const end = this.#text.indexOf('"', at + 1);
      if (end < 0) this.#fail("a quote is not closed");
      else if (end === at + 1) this.#fail("a name in quotes is empty");
      this.#at = end < 0 ? this.#text.length : end + 1;
      return { text: this.#text.slice(at + 1, Math.max(at + 1, this.#at - 1)), at, quoted: true };
    }
    while (this.#peek() !== "" && NAME.test(this.#peek())) this.#at++;
    if (this.#at === at) {
      const found = this.#peek() === "" ? "the text ends" : `"${this.#peek()}" stands there`;
      this.#fail(`expected ${what}, but ${found}`);
    }
    return { text: this.#text.slice(at, this.#at), at, quoted: false };
  }

  #over(): Piece | null {
    const match = /^over\s+([^\s<>=!]+)/.exec(this.#text.slice(this.#at));
    if (match === null) return null;
    const text = match[1] ?? "";
    const at = this.#at + match[0].length - text.length;
    this.#at += match[0].length;
    return { text, at };
  }

  #op(): ThresholdOp | null {
    const rest = this.#text.slice(this.#at);
    const op = OPS.find((known) => rest.startsWith(known));
    if (op !== undefined) {
      this.#at += op.length;
      return op;
    }
    if (rest.startsWith("=")) this.#fail('"=" does not compare; write "=="');
    else if (rest === "") this.#fail("a comparison is missing: one of < <= > >= == !=");
    else this.#fail(`expected a comparison (< <= > >= == !=) at "${rest.slice(0, 12)}"`);
    return null;
  }

  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  #spaces(): void {
    while (/\s/.test(this.#peek())) this.#at++;
  }

  /** The first problem counts. */
  #fail(problem: string): void {
    this.#problem ??= { problem, at: Math.min(this.#at, this.#text.length) };
  }
}

/** The dot of p99.9 is not a separator. */
function joinPercentile(path: readonly PathSegment[]): readonly PathSegment[] {
  const [whole, fraction] = path.slice(-2);
  if (whole === undefined || fraction === undefined || whole.quoted || fraction.quoted) return path;
  if (!/^p\d+$/.test(whole.text) || !/^\d+$/.test(fraction.text)) return path;
  return [...path.slice(0, -2), { ...whole, text: `${whole.text}.${fraction.text}` }];
}
