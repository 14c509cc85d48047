/**
 * Parses events from a stream of text (WHATWG HTML, "Server-sent events"): lines that end in CR, LF or both, fields,
 * and an empty line after each event. Pieces may be split anywhere, even inside a character.
 */

import { StringDecoder } from "node:string_decoder";

export interface SseEvent {
  /** "message" when the server names none. */
  readonly event: string;
  readonly data: string;
  /** Last id that the stream has named; "" before that. */
  readonly id: string;
}

export class EventReader {
  readonly #decoder = new StringDecoder("utf8");
  readonly #onEvent: (event: SseEvent) => void;
  #line = "";
  #first = true;
  /** The last line ended in CR: an LF that follows belongs to it. */
  #afterCr = false;
  #event = "";
  #data: string[] = [];
  #id = "";

  constructor(onEvent: (event: SseEvent) => void) {
    this.#onEvent = onEvent;
  }

  /** An event is partially received. */
  get begun(): boolean {
    return this.#line !== "" || this.#data.length > 0;
  }

  feed(bytes: Buffer): void {
    let text = this.#decoder.write(bytes);
    if (this.#first && text !== "") {
      this.#first = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    let from = 0;
    for (let at = 0; at < text.length; at++) {
      const char = text[at];
      if (char === "\n" && this.#afterCr && at === from) {
        from = at + 1;
        this.#afterCr = false;
        continue;
      }
      if (char !== "\n" && char !== "\r") continue;
      const line = this.#line + text.slice(from, at);
      this.#line = "";
      from = at + 1;
      this.#afterCr = char === "\r";
      this.#took(line);
    }
    if (from < text.length) this.#afterCr = false;
    this.#line += text.slice(from);
  }

  #took(line: string): void {
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    // A comment, which servers send to keep connections alive.
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }

  #dispatch(): void {
    const [data, event] = [this.#data, this.#event];
    this.#data = [];
    this.#event = "";
    if (data.length === 0) return;
    this.#onEvent({ event: event === "" ? "message" : event, data: data.join("\n"), id: this.#id });
  }
}
