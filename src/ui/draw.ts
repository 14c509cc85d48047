/** Parts of panels: titled rules, lines of several styles, thin bars. */

import { shorten, textWidth } from "../core/base/terminal-text.ts";
import type { Grid, Rect } from "./grid.ts";
import { Style, type StyleId } from "./style.ts";

const RULE = 0x2500;
const BAR = 0x2501;
const BAR_HALF = 0x2578;

/** A title on a rule: "─ steps ───────────". */
export function drawRule(grid: Grid, { x, y, width }: Rect, title: string): void {
  for (let column = x; column < x + width; column++) grid.set(column, y, RULE, Style.rule);
  if (title === "" || width < 6) return;
  grid.text(x + 1, y, ` ${shorten(title, width - 4)} `, Style.heading, width - 2);
}

/** Text with its style. */
export type Ink = readonly [text: string, style: StyleId];

/** Draws text in several styles, cut at `width`; returns the cells drawn. */
export function drawSpans(grid: Grid, { x, y, width }: Rect, spans: readonly Ink[]): number {
  let used = 0;
  for (const [text, style] of spans) {
    if (used >= width) break;
    used += grid.text(x + used, y, text, style, width - used);
  }
  return used;
}

/** Draws a thin bar with half steps; bars of neighbouring rows stay separate. */
export function drawBar(grid: Grid, { x, y, width }: Rect, share: number, style: StyleId): void {
  const halves = Math.round(Math.min(1, Math.max(0, share)) * width * 2);
  for (let column = 0; column < width; column++) {
    const here = halves - column * 2;
    if (here >= 2) grid.set(x + column, y, BAR, style);
    else if (here === 1) grid.set(x + column, y, BAR_HALF, style);
    else grid.set(x + column, y, RULE, Style.barBack);
  }
}

export function spansWidth(spans: readonly Ink[]): number {
  return spans.reduce((sum, [text]) => sum + textWidth(text), 0);
}
