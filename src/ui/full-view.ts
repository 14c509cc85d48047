/**
 * `--ui full`: the live picture during the run, and the end result on the normal screen, where it stays in the
 * scroll-back. Keys become controls; messages are kept (bounded) and shown, so that a console.log in a workflow never
 * breaks the picture.
 */

import { assertNever } from "../core/base/assert.ts";
import { clean } from "../core/base/terminal-text.ts";
import type { LiveRun, RunControl, RunEnd, RunView } from "../core/load/results/live.ts";
import { LiveCanvas } from "./canvas.ts";
import { endLines } from "./end.ts";
import type { Grid } from "./grid.ts";
import type { Key } from "./keys.ts";
import { linesToText } from "./lines.ts";
import { type Host, nodeHost, type ViewOptions } from "./ports.ts";
import { focusOf, History, type Scene, stepRows } from "./scene.ts";
import { Screen, sizeOf } from "./screen.ts";
import { colorDepth, Style, sgrTable } from "./style.ts";

/** Messages kept for the screen and repeated at the end. */
export const MESSAGES_MAX = 100;
const MESSAGE_CHARS_MAX = 2_000;
/** How long the confirmation of a key is shown. */
const NOTICE_MS = 2_500;
/** Refresh interval without updates: pages cycle and notices expire. */
const IDLE_MS = 500;
const SCALE_UP = 1.1;
const SCALE_DOWN = 0.9;

export class FullView implements RunView {
  readonly #options: ViewOptions;
  readonly #host: Host;
  readonly #screen: Screen;
  readonly #history = new History();
  readonly #canvas = new LiveCanvas();
  #control: (command: RunControl) => void = () => {};
  #live: LiveRun | null = null;
  /** Scale relative to the plan: the current one, or one requested here that is not yet in effect. */
  #factor = 1;
  #messages: readonly string[] = [];
  #messagesSeen = 0;
  #notice: { readonly text: string; readonly untilMs: number } | null = null;
  #pinned: number | null = null;
  #help = false;
  #cancelIdle: (() => void) | null = null;
  #finished = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#host = options.host ?? nodeHost;
    this.#screen = new Screen({
      stdout: options.stdout,
      stdin: options.stdin,
      host: this.#host,
      depth: colorDepth(options.env),
      draw: (grid) => this.#draw(grid),
      onKey: (key) => this.#onKey(key),
    });
  }

  start(control: (command: RunControl) => void): void {
    this.#control = control;
    this.#screen.open();
    this.#refresh();
  }

  update(live: LiveRun): void {
    if (live.scale !== (this.#live?.scale ?? 1)) this.#factor = live.scale;
    this.#live = live;
    this.#history.observe(live);
    this.#refresh();
  }

  message(line: string): void {
    const parts = line.slice(0, MESSAGE_CHARS_MAX).split(/\r?\n/).map(clean);
    this.#messagesSeen += parts.length;
    this.#messages = [...this.#messages, ...parts].slice(-MESSAGES_MAX);
    this.#refresh();
  }

  finish(end: RunEnd | undefined): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#cancelIdle?.();
    this.#screen.close();
    const { stdout, env } = this.#options;
    const messages = { lines: this.#messages, dropped: this.#messagesSeen - this.#messages.length };
    const { columns } = sizeOf(stdout);
    stdout.write(linesToText(endLines(end, columns, messages), sgrTable(colorDepth(env))));
  }

  #refresh(): void {
    this.#cancelIdle?.();
    if (this.#finished) return;
    this.#cancelIdle = this.#host.after(IDLE_MS, () => this.#refresh());
    this.#screen.request();
  }

  #scene(): Scene {
    const nowMs = this.#host.now();
    const notice = this.#notice !== null && nowMs < this.#notice.untilMs ? this.#notice.text : null;
    return {
      nowMs,
      notice,
      pinned: this.#pinned,
      help: this.#help,
      keys: this.#options.stdin.isTTY === true,
      report: this.#options.report !== undefined,
      messages: this.#messages,
      targets: this.#history.targets,
      arrivals: this.#history.arrivals,
    };
  }

  #draw(grid: Grid): void {
    if (this.#live !== null) {
      this.#canvas.draw(grid, this.#live, this.#scene());
      return;
    }
    grid.clear();
    grid.text(0, 0, "HYPERSCALE", Style.brand2);
    grid.text(12, 0, "starting …", Style.dim);
    this.#messages.slice(-(grid.rows - 2)).forEach((line, index) => {
      grid.text(0, 2 + index, line, Style.dim);
    });
  }

  #onKey(key: Key): void {
    switch (key) {
      case "pause":
        this.#togglePause();
        break;
      case "more":
        this.#scale(SCALE_UP, "load + 10 %");
        break;
      case "less":
        this.#scale(SCALE_DOWN, "load − 10 %");
        break;
      case "quit":
        this.#send({ kind: "stop" }, "stopping gracefully; the results follow");
        break;
      case "open":
        this.#toggleOpen();
        break;
      case "help":
        this.#help = !this.#help;
        break;
      case "up":
        this.#moveFocus(-1);
        break;
      case "down":
        this.#moveFocus(1);
        break;
      case "escape":
        this.#help = false;
        this.#pinned = null;
        break;
      case "interrupt":
        this.#host.interrupt();
        break;
      default:
        assertNever(key);
    }
    this.#refresh();
  }

  #togglePause(): void {
    if (this.#live?.phase === "paused") this.#send({ kind: "resume" }, "resuming");
    else this.#send({ kind: "pause" }, "pausing: requests in flight are finished");
  }

  /** Changes the last requested scale, from here or elsewhere. */
  #scale(change: number, notice: string): void {
    this.#factor = Number((this.#factor * change).toFixed(4));
    this.#send({ kind: "scale", factor: this.#factor }, notice);
  }

  /** There is no report before the end: the key says what will happen then. */
  #toggleOpen(): void {
    const { report } = this.#options;
    if (report === undefined) return;
    if (report.problem !== null) {
      this.#notify(`no browser opens here (${report.problem}): the end names the report's file`);
      return;
    }
    report.isWanted = !report.isWanted;
    const again = "the report will not be opened at the end";
    this.#notify(report.isWanted ? "the report opens in the browser at the end" : again);
  }

  #send(command: RunControl, notice: string): void {
    this.#control(command);
    this.#notify(notice);
  }

  #notify(text: string): void {
    this.#notice = { text, untilMs: this.#host.now() + NOTICE_MS };
  }

  #moveFocus(by: number): void {
    const count = this.#live === null ? 0 : stepRows(this.#live).length;
    if (count > 0) this.#pinned = focusOf(count, this.#scene()) + by;
  }
}
