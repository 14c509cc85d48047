/**
 * Log of a run, independent of the terminal: start and end, phases, outcome of each workflow, the rate every few
 * seconds, and messages. Never contains headers or bodies.
 */

import type { LiveRun, RunControl, RunEnd, RunJob, RunView } from "../../core/load/results/live.ts";
import type { Log } from "../../host/ports/log.ts";

const PROGRESS_SECONDS = 5;

export class LoggedView implements RunView {
  readonly #log: Log;
  readonly #view: RunView;
  readonly #statuses = new Map<string, string>();
  #phase: string | null = null;
  #progressAt = 0;

  constructor(log: Log, view: RunView) {
    this.#log = log;
    this.#view = view;
  }

  start(control: (command: RunControl) => void): void {
    this.#log.event("info", "run.started", {});
    this.#view.start((command) => {
      this.#log.event("info", "run.control", { ...command });
      control(command);
    });
  }

  update(live: LiveRun): void {
    const { phase, elapsedSeconds, ratePerSecond, failedPerSecond } = live;
    if (phase !== this.#phase) {
      this.#log.event("info", "run.phase", { from: this.#phase, to: phase, elapsedSeconds });
      this.#phase = phase;
    }
    for (const { name, status } of live.workflows) this.#status(name, status);
    if (elapsedSeconds - this.#progressAt >= PROGRESS_SECONDS) {
      this.#progressAt = elapsedSeconds;
      this.#log.event("info", "run.progress", { elapsedSeconds, ratePerSecond, failedPerSecond });
    }
    this.#view.update(live);
  }

  message(line: string): void {
    this.#log.event("info", "run.message", { text: line });
    this.#view.message(line);
  }

  job(job: RunJob): void {
    this.#log.event("info", "run.job", { ...job });
    this.#view.job?.(job);
  }

  finish(end: RunEnd | undefined): void {
    for (const { name, status } of end?.summary.workflows ?? []) this.#status(name, status);
    if (end === undefined) this.#log.event("error", "run.broken", {});
    else this.#log.event("info", "run.ended", { verdict: end.summary.verdict, files: end.files });
    this.#view.finish(end);
  }

  #status(workflow: string, status: string): void {
    const from = this.#statuses.get(workflow) ?? null;
    if (from === status) return;
    this.#statuses.set(workflow, status);
    this.#log.event("info", "run.workflow", { workflow, from, to: status });
  }
}
