/** Log lines for a person at a terminal; files, pipes and services get JSON. */

import { clean } from "../../core/base/terminal-text.ts";
import type { LineSink } from "./json-log.ts";

/** Turns every JSON line into a readable one: "12:03:04 warn  leader.fenced  epoch=7 statement=renew". */
export class TerminalLog implements LineSink {
  readonly #lines: LineSink;

  constructor(lines: LineSink) {
    this.#lines = lines;
  }

  write(line: string): void {
    this.#lines.write(readable(line));
  }
}

function readable(line: string): string {
  try {
    const { at, level, event, node: _, ...fields } = JSON.parse(line) as Record<string, unknown>;
    const time = String(at).slice(11, 19);
    const rest = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
    const text = `${time} ${String(level).padEnd(5)} ${String(event)}  ${rest.join(" ")}`;
    return `${clean(text).trimEnd()}\n`;
  } catch {
    return line;
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
