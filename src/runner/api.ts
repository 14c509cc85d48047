/**
 * A run from a program: `run("flow.ts", { vus: 10 })` starts it, its events report what happens, and its summary is the
 * content of `summary.json`. The command line is such a program.
 *
 * Dependencies are loaded when a run begins: every workflow file imports this module.
 */

import { maskCredentials } from "../core/base/mask-credentials.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { LiveRun, RunControl } from "../core/load/results/live.ts";
import type { RunSummary } from "../core/load/results/model.ts";
import type { Bundle } from "./bundle.ts";
import { RunError } from "./errors.ts";
import { EventQueue } from "./event-queue.ts";
import { startReports } from "./reports.ts";
import {
  abortAfterMs,
  checkFileOptions,
  checkThresholds,
  isUrl,
  overridesOf,
  type RunOptions,
  runTimeoutMs,
} from "./run-options.ts";

export type RunEvent =
  /** The workflows are loaded and checked; load begins now. */
  | { readonly kind: "started" }
  /** Ten times per second: the summary as if the run ended now, and live state. */
  | { readonly kind: "live"; readonly live: LiveRun }
  /** A line from the run or from user code. */
  | { readonly kind: "message"; readonly line: string };

type LiveEvent = Extract<RunEvent, { kind: "live" }>;

export class Run implements AsyncIterable<RunEvent> {
  /** Outcome of the run; rejects when it could not begin. A failed run has a summary, too. */
  readonly summary: Promise<RunSummary>;
  readonly #events = new EventQueue<LiveEvent, Exclude<RunEvent, LiveEvent>>();
  #watched = false;
  #control: ((command: RunControl) => void) | undefined;
  /** Stop requested before there was anything to stop. */
  #stopped = false;

  constructor(target: string, options: RunOptions) {
    const stop = (): void => this.stop();
    options.signal?.addEventListener("abort", stop);
    if (options.signal?.aborted === true) this.#stopped = true;
    this.summary = this.#run(target, options).finally(() =>
      options.signal?.removeEventListener("abort", stop),
    );
    this.summary.then(
      () => this.#events.end(),
      (error: unknown) => this.#events.end(error),
    );
  }

  async #run(target: string, options: RunOptions): Promise<RunSummary> {
    const overrides = overridesOf(options);
    checkThresholds(options.thresholds ?? []);
    const timeoutMs = runTimeoutMs(options);
    const abortAfter = abortAfterMs(options);
    const { LocalRun } = await import("./run.ts");
    const { physicalCores } = await import("./machine.ts");
    const { packageVersion } = await import("./version.ts");
    const bundle = await load(target, options, overrides);
    try {
      if (this.#stopped) throw new RunError("interrupted before the run began", 130);
      const local = new LocalRun({
        name: maskCredentials(target),
        title: options.title,
        tags: options.tags ?? {},
        bundle,
        overrides,
        cores: options.cores ?? physicalCores(),
        thresholds: options.thresholds ?? [],
        abortAfterMs: abortAfter,
        timeoutMs,
        inspect: options.inspect === true,
        command: options.command ?? `run(${JSON.stringify(maskCredentials(target))})`,
        version: packageVersion(),
        watched: () => this.#watched,
        startReports: (ofFile) => {
          const { report = [], tags = {}, title } = options;
          const say = (line: string): void => this.#events.push({ kind: "message", line });
          const info = { name: maskCredentials(target), title, tags };
          return startReports([...report, ...ofFile], info, say);
        },
        on: {
          started: () => this.#events.push({ kind: "started" }),
          live: (live) => this.#events.live({ kind: "live", live }),
          message: (line) => this.#events.push({ kind: "message", line }),
        },
      });
      this.#control = (command) => local.control(command);
      return await local.run();
    } finally {
      await bundle.remove();
    }
  }

  /** A single reader gets all events. Leaving the loop does not affect the run. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent, void> {
    this.#watched = true;
    try {
      yield* this.quiet();
    } finally {
      this.#watched = false;
    }
  }

  /** The events without live summaries, which then need not be computed. */
  quiet(): AsyncIterable<RunEvent> {
    // The reader of the events gets the error there.
    this.summary.catch(() => {});
    return this.#events.events();
  }

  /** Ends gracefully, with results; a second call ends at once. */
  stop(): void {
    if (this.#control === undefined) this.#stopped = true;
    else this.#control({ kind: "stop" });
  }

  pause(): void {
    this.#control?.({ kind: "pause" });
  }

  resume(): void {
    this.#control?.({ kind: "resume" });
  }

  /**
   * Scales virtual users or rate relative to the plan: 1 is as planned, 1.1 is ten percent more; above 0, at most 100.
   */
  scale(factor: number): void {
    this.#control?.({ kind: "scale", factor });
  }
}

/** Runs a workflow file, or loads a URL, on this machine. */
export function run(target: string, options: RunOptions = {}): Run {
  return new Run(target, options);
}

async function load(
  target: string,
  options: RunOptions,
  overrides: LoadOverrides,
): Promise<Bundle> {
  if (!isUrl(target)) {
    checkFileOptions(options);
    const { bundleWorkflow } = await import("./bundle.ts");
    return bundleWorkflow(target);
  }
  const { urlRequest, urlWorkflow } = await import("./url-workflow.ts");
  return urlWorkflow(urlRequest(target, options), overrides);
}
