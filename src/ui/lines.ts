/** Styled text outside the grid: lines of spans, printed with or without escape codes. */

import { clean, textWidth } from "../core/base/terminal-text.ts";
import { Style, type StyleId } from "./style.ts";

export interface Span {
  readonly text: string;
  readonly style: StyleId;
  /** Target of a click, in terminals that support it (OSC 8). */
  readonly link?: string | undefined;
}

export type Line = readonly Span[];

export function span(text: string, style: StyleId = Style.text): Span {
  return { text, style };
}

export function line(...parts: readonly (Span | string)[]): Line {
  return parts.map((part) => (typeof part === "string" ? span(part) : part));
}

export function lineWidth(spans: Line): number {
  return spans.reduce((sum, { text }) => sum + textWidth(text), 0);
}

/** Renders with a table of SGR codes in colour; with null as plain text. User text is sanitised here. */
export function linesToText(lines: readonly Line[], sgr: readonly string[] | null): string {
  let out = "";
  for (const spans of lines) {
    let row = "";
    for (const { link, text, style } of spans) {
      const safe = clean(text);
      if (safe === "") continue;
      const plain = sgr === null || style === Style.text;
      const styled = plain ? safe : `${sgr[style] ?? ""}${safe}\x1b[0m`;
      row += sgr === null || link === undefined ? styled : linked(styled, link);
    }
    out += `${sgr === null ? row.trimEnd() : row}\n`;
  }
  return out;
}

/** A URL has no escape codes: it is percent-encoded. */
function linked(text: string, url: string): string {
  return `\x1b]8;;${clean(url)}\x1b\\${text}\x1b]8;;\x1b\\`;
}
