/**
 * One run on this machine, from the first core to the summary.
 *
 *   bundle ─▶ core 0 loads it ─▶ manifests ─▶ checks (graph, descriptors, ports) ─▶ more cores
 *          ─▶ JobRunner drives the workflows ─▶ RunAggregate keeps the numbers ─▶ summary
 *
 * User code runs only in the cores. The coordinator, this process, plans, merges and draws.
 */

import { randomUUID } from "node:crypto";
import os from "node:os";
import { formatDuration } from "../core/base/duration.ts";
import { mostOnOneCore, mostToOneTarget } from "../core/run/job/connections.ts";
import type { CoreEvent, Problem } from "../core/run/job/core-messages.ts";
import { JobRunner } from "../core/run/job/execution.ts";
import { validateManifests, type WorkflowManifest, withParts } from "../core/run/job/manifest.ts";
import { slotsOf } from "../core/run/job/slots.ts";
import { planVusMax } from "../core/run/plan/load.ts";
import type { LiveRun, RunControl, RunPhase } from "../core/run/results/live.ts";
import type { RunSummary } from "../core/run/results/model.ts";
import { RunAggregate } from "../core/run/results/run-aggregate.ts";
import { unknownName, type WrittenTexts } from "../core/run/results/threshold-names.ts";
import { parseThreshold } from "../core/run/results/thresholds.ts";
import { ERROR_KINDS } from "../protocols/protocol.ts";
import type { LoadOverrides } from "../workflow/overrides.ts";
import type { Bundle } from "./bundle.ts";
import { CoreProcess } from "./core-process.ts";
import { RunError } from "./errors.ts";
import { checkDescriptors, checkPorts } from "./limits.ts";
import { cpuModel } from "./machine.ts";
import { writtenTexts } from "./written-texts.ts";

/** What happens, for whoever watches. */
interface RunListener {
  /** Everything is loaded and checked; load begins now. */
  started(): void;
  live(live: LiveRun): void;
  /** A line from the run or from user code. */
  message(line: string): void;
}

interface LocalRunOptions {
  /** File or URL, as the user named it. */
  readonly name: string;
  /** What the user calls this run, and tags of the results. */
  readonly title?: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
  readonly bundle: Bundle;
  readonly overrides: LoadOverrides;
  /** CPU cores to plan for: a run with fewer users takes fewer, one with more workflows more. */
  readonly cores: number;
  /** Thresholds of the whole run, besides those of the workflows. */
  readonly thresholds: readonly string[];
  /** Every threshold that fails after so much measured time ends the run; null: those that say so. */
  readonly abortAfterMs: number | null;
  /** Ends the run however far it is; null for no limit. */
  readonly timeoutMs: number | null;
  /** Somebody looks: live figures are worth working out. */
  readonly watched: () => boolean;
  readonly inspect: boolean;
  readonly command: string;
  readonly version: string;
  readonly on: RunListener;
}

/** How long a core may take to import the workflow. */
const LOAD_TIMEOUT_MS = 30_000;
const LIVE_INTERVAL_MS = 100;
/** Behind the graceful stop: what does not end by then is ended. */
const STOP_SLACK_MS = 1_500;
/** A core that runs a workflow speaks ten times a second; after so long a silence it is given up. */
const SILENCE_MS_MAX = 30_000;

export class LocalRun {
  readonly #options: LocalRunOptions;
  readonly #cores: CoreProcess[] = [];
  readonly #startedAt = performance.now();
  /** Cores that priorities share out; there are more processes when workflows need them. */
  #pool = 1;
  #loading: ((core: number, event: CoreEvent) => void) | undefined;
  /** Ends the loading of the workflow with an error. */
  #loadingFailed: (error: RunError) => void = () => {};
  readonly #heardAt = new Map<number, number>();
  #stopTimer: NodeJS.Timeout | undefined;
  #aggregate: RunAggregate | undefined;
  #job: JobRunner | undefined;
  #phaseReached: RunPhase = "starting";
  #interrupted = false;
  #gracefulStopMs = 0;
  /** The first mistake of the user that kept a workflow from starting. */
  #mistake: Problem | undefined;
  #finish: () => void = () => {};

  constructor(options: LocalRunOptions) {
    this.#options = options;
  }

  get #phase(): RunPhase {
    const begun = this.#phaseReached === "starting" && this.#aggregate?.anyStarted === true;
    return begun ? "running" : this.#phaseReached;
  }

  async run(): Promise<RunSummary> {
    try {
      const manifests = await this.#load();
      await this.#runJob(manifests);
      return this.#summary();
    } finally {
      clearTimeout(this.#stopTimer);
      this.#job?.end();
      await Promise.all(this.#cores.map((core) => core.end()));
    }
  }

  /** Core 0 tells what there is to run; the others follow once it is known how many are needed. */
  async #load(): Promise<readonly WorkflowManifest[]> {
    const [manifests] = await this.#startCores(1);
    if (manifests === undefined) throw new RunError("the executor core did not start", 1);
    this.#validate(manifests, await writtenTexts(this.#options.bundle.address));
    const needed = manifests.reduce(
      (sum, { isTest, load }) => sum + (isTest ? planVusMax(load) : 1),
      0,
    );
    this.#pool = Math.max(1, Math.min(this.#options.cores, needed));
    const slots = slotsOf(manifests, this.#pool);
    this.#checkLimits(manifests);
    await this.#startCores(slots - 1);
    return manifests;
  }

  #startCores(count: number): Promise<(readonly WorkflowManifest[])[]> {
    const { bundle, inspect, overrides } = this.#options;
    const first = this.#cores.length;
    const awaited = new Set(Array.from({ length: count }, (_, i) => first + i));
    const manifests: (readonly WorkflowManifest[])[] = [];
    let timer: NodeJS.Timeout | undefined;
    const loaded = new Promise<(readonly WorkflowManifest[])[]>((resolve, reject) => {
      if (count === 0) resolve([]);
      this.#loadingFailed = reject;
      timer = setTimeout(() => {
        if (inspect) return;
        const seconds = LOAD_TIMEOUT_MS / 1_000;
        reject(new RunError(`the workflow did not load within ${seconds} s`, 1, LOAD_HINT));
      }, LOAD_TIMEOUT_MS);
      this.#loading = (core, event) => {
        if (event.kind === "log" || event.kind === "unhandled")
          this.#options.on.message(event.line);
        if (event.kind === "loadFailed") reject(new RunError(this.#inFile(event.problem), 2));
        if (event.kind !== "loaded") return;
        manifests.push(event.manifests);
        awaited.delete(core);
        if (awaited.size === 0) resolve(manifests);
      };
      for (const number of awaited) {
        const core = new CoreProcess({
          number,
          inspect,
          onEvent: (event) => this.#onEvent(number, event),
          onLost: (what) =>
            this.#job === undefined ? reject(new RunError(what, 1)) : this.#onLost(number, what),
        });
        this.#cores.push(core);
        core.send({
          kind: "load",
          bundle: bundle.address,
          folder: bundle.folder,
          overrides,
          core: number,
        });
      }
    });
    return loaded.finally(() => clearTimeout(timer));
  }

  /** A mistake that has no line is at least somewhere in the file. */
  #inFile(problem: Problem): string {
    return placed({ ...problem, location: problem.location ?? this.#options.name });
  }

  #validate(manifests: readonly WorkflowManifest[], texts: WrittenTexts): void {
    for (const { message, severity } of validateManifests(manifests)) {
      if (severity === "error") throw new RunError(message, 2);
      this.#options.on.message(`warning: ${message}`);
    }
    const ofRun = this.#options.thresholds.map((text) => ({ text, workflow: null }));
    const ofWorkflows = withParts(manifests).flatMap(({ name, thresholds }) =>
      thresholds.map(({ expression }) => ({ text: expression, workflow: name })),
    );
    for (const { text, workflow } of [...ofRun, ...ofWorkflows]) {
      const problem = thresholdProblem(text, workflow, withParts(manifests), texts);
      if (problem !== null) throw new RunError(problem, 2);
    }
  }

  #checkLimits(manifests: readonly WorkflowManifest[]): void {
    const descriptors = checkDescriptors(mostOnOneCore(manifests, this.#pool));
    if (!descriptors.ok) throw new RunError(descriptors.problem, 2);
    const { connections, to } = mostToOneTarget(manifests, this.#pool);
    const loopback = to !== null && /^(127\.|localhost:|\[?::1)/.test(to);
    const ports = checkPorts(connections, loopback);
    if (!ports.ok) throw new RunError(ports.problem, 2);
  }

  async #runJob(manifests: readonly WorkflowManifest[]): Promise<void> {
    this.#gracefulStopMs = Math.max(...manifests.map(({ gracefulStopMs }) => gracefulStopMs));
    const { abortAfterMs, name, on, thresholds } = this.#options;
    const cores = this.#cores.map((core) => core.number);
    const aggregate = new RunAggregate({
      runId: randomUUID(),
      name,
      title: this.#options.title,
      tags: this.#options.tags,
      manifests,
      thresholds,
      abortAfterMs,
      environment: this.#environment(cores.length),
      now: () => performance.now() - this.#startedAt,
    });
    this.#aggregate = aggregate;
    this.#job = new JobRunner(
      manifests,
      { slots: cores, pool: this.#pool },
      {
        send: (core, command) => this.#cores[core]?.send(command),
        now: () => performance.now(),
        log: (line) => on.message(line),
        abort: (workflow, reason) => {
          on.message(`"${workflow}" ends the run: ${reason}`);
          this.#stop();
        },
        problem: (problem) => {
          this.#mistake ??= problem;
        },
        done: () => this.#finish(),
      },
      aggregate,
    );
    await this.#untilDone(aggregate);
    // Nothing ran at all: that is an error, not a result.
    if (this.#mistake !== undefined && !aggregate.anyStarted)
      throw new RunError(placed(this.#mistake), 2);
  }

  #untilDone(aggregate: RunAggregate): Promise<void> {
    const { on, watched } = this.#options;
    on.started();
    const draw = setInterval(() => {
      if (watched()) on.live(aggregate.live(this.#phase));
    }, LIVE_INTERVAL_MS);
    const judge = setInterval(() => this.#judge(aggregate), aggregate.judgeEveryMs);
    const limit = this.#armLimit(aggregate);
    return new Promise<void>((resolve) => {
      this.#finish = resolve;
      this.#job?.start();
    }).finally(() => {
      clearInterval(draw);
      clearInterval(judge);
      clearTimeout(limit);
      this.#phaseReached = "done";
    });
  }

  /** Not under a debugger, as all limits. */
  #armLimit(aggregate: RunAggregate): NodeJS.Timeout | undefined {
    const { inspect, on, timeoutMs } = this.#options;
    if (timeoutMs === null || inspect) return undefined;
    return setTimeout(() => {
      const text = `it took longer than ${formatDuration(timeoutMs)}`;
      aggregate.fault(null, { gate: "the run ended within its time limit", text });
      on.message(`the run is ended: ${text}, its limit`);
      this.#stop();
    }, timeoutMs);
  }

  #judge(aggregate: RunAggregate): void {
    const silentSince = performance.now() - SILENCE_MS_MAX;
    for (const core of this.#job?.stuckCores() ?? []) this.#giveUp(core);
    for (const core of this.#job?.loadingCores() ?? [])
      if ((this.#heardAt.get(core) ?? Number.POSITIVE_INFINITY) < silentSince) this.#giveUp(core);
    const { abort, searches } = aggregate.decide();
    for (const { command, workflow } of searches) {
      if (command.kind === "level") this.#job?.level(workflow, command.load);
      else this.#job?.finish(workflow);
    }
    if (abort) this.#stop();
  }

  /** Gracefully, but not for ever: code that never waits cannot be asked to end. */
  #stop(): void {
    if (this.#stopTimer !== undefined) return;
    this.#phaseReached = "stopping";
    this.#job?.stop();
    this.#stopTimer = setTimeout(() => {
      for (const core of this.#job?.stoppedCores() ?? []) this.#giveUp(core);
    }, this.#gracefulStopMs + STOP_SLACK_MS);
  }

  /** Not under a debugger: whoever is silent there may be held at a breakpoint. */
  #giveUp(core: number): void {
    if (this.#options.inspect) return;
    this.#options.on.message(
      `executor core ${core} does not answer: code in the workflow keeps it busy or never ends`,
    );
    this.#cores[core]?.kill();
  }

  control(command: RunControl): void {
    switch (command.kind) {
      case "pause":
        if (this.#phase !== "running") return;
        this.#phaseReached = "paused";
        this.#job?.steer("pause");
        this.#aggregate?.paused();
        return;
      case "resume":
        if (this.#phase !== "paused") return;
        this.#phaseReached = "running";
        this.#job?.steer("resume");
        this.#aggregate?.resumed();
        return;
      case "scale":
        this.#job?.scale(command.factor);
        this.#aggregate?.scaled(command.factor);
        return;
      case "stop":
        this.#interrupt();
    }
  }

  /** The first time ends gracefully, the second at once. */
  #interrupt(): void {
    if (this.#interrupted) {
      this.#aggregate?.givenUp();
      this.#finish();
      return;
    }
    this.#interrupted = true;
    if (this.#job === undefined) {
      this.#loadingFailed(new RunError("interrupted before the run began", 130));
      return;
    }
    this.#options.on.message("stopping: waiting for work in flight (again to stop at once)");
    this.#stop();
  }

  #onEvent(core: number, event: CoreEvent): void {
    this.#heardAt.set(core, performance.now());
    if (this.#job === undefined) this.#loading?.(core, event);
    else this.#job.onEvent(core, event);
  }

  #onLost(core: number, what: string): void {
    this.#aggregate?.coreLost(core, what);
    this.#options.on.message(what);
    this.#job?.coreLost(core);
  }

  #environment(cores: number): RunSummary["environment"] {
    const { command, version } = this.#options;
    return {
      hyperscale: version,
      node: process.version,
      platform: `${os.type()} ${os.release()} ${os.arch()}`,
      cpuModel: cpuModel(),
      cpus: os.availableParallelism(),
      cores,
      command,
    };
  }

  #summary(): RunSummary {
    if (this.#aggregate === undefined) throw new RunError("the run ended before it began", 1);
    return this.#aggregate.summary({ interrupted: this.#interrupted, ended: true });
  }
}

function thresholdProblem(
  text: string,
  workflow: string | null,
  manifests: readonly WorkflowManifest[],
  texts: WrittenTexts,
): string | null {
  const parsed = parseThreshold(text);
  const problem = parsed.ok
    ? unknownName(parsed.threshold, workflow, { manifests, errorKinds: ERROR_KINDS, texts })
    : parsed.problem;
  if (problem === null) return null;
  const where = workflow === null ? "--threshold" : `workflow "${workflow}": threshold`;
  return `${where} "${text}": ${problem}`;
}

const LOAD_HINT =
  "Code at the top of a workflow file runs when it is loaded: does something there wait for ever?";

function placed({ location, message }: Problem): string {
  return location === null ? message : `${location}: ${message}`;
}
