/**
 * Exclusive use of a terminal. Takes the alternate screen, hides the cursor and reads keys raw; restores all of it in
 * close(), which is safe to call twice and is also registered for the end of the process. Draws at most 20 pictures per
 * second, and only the newest: a request while one is due, or while the terminal has not accepted the last one, is
 * merged into the next.
 */

import { Grid } from "./grid.ts";
import { type Key, parseKeys } from "./keys.ts";
import { paint } from "./paint.ts";
import type { Host, InputStream, OutputStream } from "./ports.ts";
import { type ColorDepth, sgrTable } from "./style.ts";

const FRAME_MS = 50;
const FALLBACK_COLUMNS = 80;
const FALLBACK_ROWS = 24;
/** A larger terminal is a mistake, and a picture would cost too much. */
const COLUMNS_MAX = 1_000;
const ROWS_MAX = 400;

/** Alternate screen, clear, no cursor, no wrapping at the border. */
export const ENTER = "\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?7l";
/** The reverse, styles reset first. */
export const LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

interface ScreenOptions {
  readonly stdout: OutputStream;
  readonly stdin: InputStream;
  readonly host: Host;
  readonly depth: ColorDepth;
  readonly draw: (grid: Grid) => void;
  readonly onKey: (key: Key) => void;
}

export class Screen {
  readonly #options: ScreenOptions;
  readonly #sgr: readonly string[];
  readonly #undo: (() => void)[] = [];
  #open = false;
  /** Content of the terminal; null when unknown, so that all of it is drawn. */
  #shown: Grid | null = null;
  #next: Grid | null = null;
  #cancelFrame: (() => void) | null = null;
  #lastFrameAt = -Infinity;
  #waitingForDrain = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#sgr = sgrTable(options.depth);
  }

  open(): void {
    const { stdout, stdin, host } = this.#options;
    this.#open = true;
    this.#undo.push(host.onExit(() => this.close()));
    this.#undo.push(host.onContinue(() => this.#reenter()));
    const onResize = (): void => this.request();
    const onDrain = (): void => {
      this.#waitingForDrain = false;
      this.request();
    };
    // A terminal that disappeared must not end the run: its results are still to be written. This listener stays, for
    // the end result is written to the same stream.
    const onError = (): void => {
      this.#open = false;
    };
    stdout.on("resize", onResize);
    stdout.on("drain", onDrain);
    stdout.on("error", onError);
    this.#undo.push(() => stdout.off("resize", onResize));
    this.#undo.push(() => stdout.off("drain", onDrain));
    stdout.write(ENTER);
    if (stdin.isTTY === true) this.#listen(stdin);
  }

  /** Requests a picture; it is drawn as soon as the frame rate allows. */
  request(): void {
    if (!this.#open || this.#cancelFrame !== null || this.#waitingForDrain) return;
    const { host } = this.#options;
    const wait = Math.max(0, this.#lastFrameAt + FRAME_MS - host.now());
    this.#cancelFrame = host.after(wait, () => {
      this.#cancelFrame = null;
      this.#frame();
    });
  }

  close(): void {
    if (this.#undo.length === 0) return;
    const usable = this.#open;
    this.#open = false;
    this.#cancelFrame?.();
    this.#cancelFrame = null;
    for (const undo of this.#undo.splice(0).reverse()) undo();
    if (usable) this.#options.stdout.write(LEAVE);
  }

  #listen(stdin: InputStream): void {
    const onData = (chunk: Uint8Array | string): void => {
      const text = typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
      for (const key of parseKeys(text)) this.#options.onKey(key);
    };
    stdin.setRawMode?.(true);
    stdin.on("data", onData);
    stdin.resume();
    stdin.unref?.();
    this.#undo.push(() => {
      stdin.off("data", onData);
      stdin.setRawMode?.(false);
      stdin.pause();
    });
  }

  #reenter(): void {
    if (!this.#open) return;
    const { stdin, stdout } = this.#options;
    if (stdin.isTTY === true) stdin.setRawMode?.(true);
    stdout.write(ENTER);
    this.#shown = null;
    this.request();
  }

  #frame(): void {
    if (!this.#open) return;
    const { stdout, host, draw } = this.#options;
    this.#lastFrameAt = host.now();
    const { columns, rows } = sizeOf(stdout);
    const next = this.#gridOf(columns, rows);
    draw(next);
    const shown = this.#shown;
    const same = shown !== null && shown.columns === columns && shown.rows === rows;
    const bytes = paint(same ? shown : null, next, this.#sgr);
    this.#next = same ? shown : null;
    this.#shown = next;
    if (bytes === "") return;
    this.#waitingForDrain = !stdout.write(same ? bytes : `\x1b[2J${bytes}`);
  }

  /** Two grids alternate: the one shown, and the one drawn. */
  #gridOf(columns: number, rows: number): Grid {
    const spare = this.#next;
    return spare !== null && spare.columns === columns && spare.rows === rows
      ? spare
      : new Grid(columns, rows);
  }
}

/** A terminal that does not know its size reports nothing or zero. */
export function sizeOf(stdout: OutputStream): { readonly columns: number; readonly rows: number } {
  return {
    columns: Math.min(COLUMNS_MAX, Math.floor(stdout.columns ?? 0) || FALLBACK_COLUMNS),
    rows: Math.min(ROWS_MAX, Math.floor(stdout.rows ?? 0) || FALLBACK_ROWS),
  };
}
