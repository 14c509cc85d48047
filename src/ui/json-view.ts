/**
 * `--ui json`: one JSON object per line for a program that started the run: metrics once per second, messages as they
 * arrive, the job of a cluster, and the end. The fields are described in docs/guide/terminal.md.
 */

import type { LiveRun, RunControl, RunEnd, RunJob, RunView } from "../core/load/results/live.ts";
import { type Host, nodeHost, type ViewOptions } from "./ports.ts";

const FIGURES_MS = 1_000;

export class JsonView implements RunView {
  readonly #options: ViewOptions;
  readonly #host: Host;
  #phase: string | null = null;
  #toldAt = -Infinity;
  #broken = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#host = options.host ?? nodeHost;
    // A closed reader must not end the run: its results are still to be written.
    options.stdout.on("error", () => {
      this.#broken = true;
    });
  }

  start(_control: (command: RunControl) => void): void {}

  update(live: LiveRun): void {
    const now = this.#host.now();
    if (live.phase === this.#phase && now - this.#toldAt < FIGURES_MS) return;
    this.#phase = live.phase;
    this.#toldAt = now;
    const { phase, elapsedSeconds, totalSeconds, ratePerSecond, failedPerSecond } = live;
    this.#print({
      event: "figures",
      ...{ phase, elapsedSeconds, totalSeconds, ratePerSecond, failedPerSecond },
      workflows: live.workflows.map(({ name, status, progress, activeVus, steps }) => ({
        ...{ name, status, progress, activeVus },
        steps: steps.map((step) => ({ ...step })),
      })),
    });
  }

  message(text: string): void {
    this.#print({ event: "message", text });
  }

  job(job: RunJob): void {
    this.#print({ event: "job", ...job });
  }

  finish(end: RunEnd | undefined): void {
    if (end === undefined) return;
    const { verdict, reasons } = end.summary;
    this.#print({ event: "end", verdict, reasons, files: end.files });
  }

  #print(value: object): void {
    if (!this.#broken) this.#options.stdout.write(`${JSON.stringify(value)}\n`);
  }
}
