/**
 * One run on this machine, from the first core to the summary.
 *
 *   bundle ─▶ core 0 loads it ─▶ manifests ─▶ checks (graph, descriptors, ports) ─▶ more cores
 *          ─▶ RunMachine drives the workflows and keeps the numbers ─▶ summary
 *
 * User code runs only in the cores. The coordinator, this process, plans, merges and draws.
 */

import { randomUUID } from "node:crypto";
import os from "node:os";
import { Agreement } from "../core/load/execution/agreement.ts";
import { type RunEffect, type RunInput, RunMachine } from "../core/load/execution/run-machine.ts";
import { mostOnOneCore, mostToOneTarget } from "../core/load/job/connections.ts";
import type { CoreEvent } from "../core/load/job/core-messages.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { WorkflowManifest } from "../core/load/job/manifest.ts";
import { slotsOf } from "../core/load/job/slots.ts";
import { planVusMax } from "../core/load/plan/load.ts";
import type { LiveRun, RunControl } from "../core/load/results/live.ts";
import type { RunSummary } from "../core/load/results/model.ts";
import { RunAggregate } from "../core/load/results/run-aggregate.ts";
import { CoreProcess } from "../engine/core-process.ts";
import { ERROR_KINDS } from "../protocols/protocol.ts";
import type { Reporting } from "../reporters/reporting.ts";
import type { Bundle } from "./bundle.ts";
import {
  checkManifests,
  LOAD_TIMEOUT_MS,
  loadedTooLate,
  placed,
  placedIn,
} from "./check-manifests.ts";
import { RunError } from "./errors.ts";
import { checkDescriptors, checkPorts } from "./limits.ts";
import { cpuModel } from "./machine.ts";
import { WorkflowPhases } from "./workflow-phases.ts";
import { writtenTexts } from "./written-texts.ts";

/** Callbacks for observers. */
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
  /** Title of this run, and tags of the results. */
  readonly title?: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
  readonly bundle: Bundle;
  readonly overrides: LoadOverrides;
  /** CPU cores to plan for: a run with fewer users takes fewer, one with more workflows more. */
  readonly cores: number;
  /** Thresholds of the whole run, besides those of the workflows. */
  readonly thresholds: readonly string[];
  /** Every threshold that fails after this much measured time ends the run; null: only those that request it. */
  readonly abortAfterMs: number | null;
  /** Ends the run whatever its progress; null for no limit. */
  readonly timeoutMs: number | null;
  /** Whether live metrics are displayed, and so worth computing. */
  readonly watched: () => boolean;
  readonly inspect: boolean;
  readonly command: string;
  readonly version: string;
  /** Starts the reporters, with those that the file requests; null when there are none. */
  readonly startReports: (ofFile: readonly string[]) => Promise<Reporting | null>;
  readonly on: RunListener;
}

const LIVE_INTERVAL_MS = 100;
/** How often due reporters are checked: they report every second at most. */
const REPORT_TICK_MS = 200;
export class LocalRun {
  readonly #options: LocalRunOptions;
  readonly #cores: CoreProcess[] = [];
  readonly #startedAt = performance.now();
  /** Cores that priorities share; there are more processes when workflows need them. */
  #pool = 1;
  #loading: ((core: number, event: CoreEvent) => void) | undefined;
  /** Commands that arrived before there was a run to control. */
  readonly #asked: RunControl[] = [];
  /** Ends the loading of the workflow with an error. */
  #loadingFailed: (error: RunError) => void = () => {};
  /** Reporters requested by the file. */
  #reports: readonly string[] = [];
  #reporting: Reporting | null = null;
  /** Only reporting remains to be done. */
  #isReporting = false;
  #isStopped = false;
  /** For reporters; null without. */
  #phases: WorkflowPhases | null = null;
  #machine: RunMachine | undefined;
  #timer: NodeJS.Timeout | undefined;
  #finish: () => void = () => {};

  constructor(options: LocalRunOptions) {
    this.#options = options;
  }

  async run(): Promise<RunSummary> {
    try {
      const manifests = await this.#load();
      return await this.#runJob(manifests);
    } finally {
      clearTimeout(this.#timer);
      await Promise.all(this.#cores.map((core) => core.end()));
    }
  }

  /** Core 0 reports what there is to run; the others follow once their number is known. */
  async #load(): Promise<readonly WorkflowManifest[]> {
    const [manifests] = await this.#startCores(1);
    if (manifests === undefined) throw new RunError("the executor core did not start", 1);
    const texts = await writtenTexts(this.#options.bundle.address);
    const { on, thresholds } = this.#options;
    checkManifests({ manifests, thresholds, texts, warn: (line) => on.message(line) });
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
        if (!inspect) reject(loadedTooLate());
      }, LOAD_TIMEOUT_MS);
      this.#loading = (core, event) => {
        if (event.kind === "log" || event.kind === "unhandled")
          this.#options.on.message(event.line);
        if (event.kind === "declared") this.#reports = event.reports;
        if (event.kind === "loadFailed")
          reject(new RunError(placedIn(this.#options.name, event.problem), 2));
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
            this.#machine === undefined
              ? reject(new RunError(what, 1))
              : this.#take({ kind: "coreLost", core: number, what }),
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

  #checkLimits(manifests: readonly WorkflowManifest[]): void {
    const descriptors = checkDescriptors(mostOnOneCore(manifests, this.#pool));
    if (!descriptors.ok) throw new RunError(descriptors.problem, 2);
    const { connections, to } = mostToOneTarget(manifests, this.#pool);
    const loopback = to !== null && /^(127\.|localhost:|\[?::1)/.test(to);
    const ports = checkPorts(connections, loopback);
    if (!ports.ok) throw new RunError(ports.problem, 2);
  }

  async #runJob(manifests: readonly WorkflowManifest[]): Promise<RunSummary> {
    const { abortAfterMs, inspect, name, on, tags, thresholds, timeoutMs, title, watched } =
      this.#options;
    const slots = this.#cores.map((core) => core.number);
    const aggregate = new RunAggregate({
      runId: randomUUID(),
      ...{ name, title, tags, manifests, thresholds, abortAfterMs },
      errorKinds: ERROR_KINDS,
      environment: this.#environment(slots.length),
      startedAt: new Date(Date.now() - performance.now() + this.#startedAt).toISOString(),
    });
    const machine = new RunMachine({
      ...{ manifests, aggregate, timeoutMs },
      cores: { slots, pool: this.#pool },
      agreement: new Agreement(manifests),
      limited: !inspect,
      beganAt: this.#startedAt,
    });
    const reporting = await this.#options.startReports(this.#reports);
    this.#reporting = reporting;
    if (this.#asked.some(({ kind }) => kind === "stop")) {
      await reporting?.abandon();
      throw interrupted();
    }
    if (reporting !== null) this.#phases = new WorkflowPhases(manifests);
    const share = reporting?.sampledShare ?? 0;
    if (share > 0) for (const core of this.#cores) core.send({ kind: "sampleCalls", share });
    this.#machine = machine;
    on.started();
    const draw = setInterval(() => {
      if (watched()) on.live(machine.live(performance.now()));
    }, LIVE_INTERVAL_MS);
    const report = reporting === null ? undefined : this.#report(machine, reporting);
    try {
      await new Promise<void>((resolve) => {
        this.#finish = resolve;
        this.#take({ kind: "start" });
        for (const control of this.#asked) this.#take({ kind: "control", control });
      });
    } finally {
      clearInterval(draw);
      clearInterval(report);
    }
    // Nothing ran at all: that is an error, not a result.
    if (machine.mistake !== undefined) {
      await reporting?.abandon();
      throw new RunError(placed(machine.mistake), 2);
    }
    const summary = machine.summary();
    this.#isReporting = true;
    return reporting?.finish(summary, this.#phases?.list(Date.now())) ?? summary;
  }

  /** Calls reporters when they are due. */
  #report(machine: RunMachine, reporting: Reporting): NodeJS.Timeout {
    const began = performance.now();
    return setInterval(() => {
      const now = performance.now();
      if (reporting.isDue(now - began)) reporting.progress(machine.progress(now), now - began);
    }, REPORT_TICK_MS);
  }

  #take(input: RunInput): void {
    const machine = this.#machine;
    if (machine === undefined) return;
    for (const effect of machine.step(input, performance.now())) this.#perform(effect);
    clearTimeout(this.#timer);
    const deadline = machine.nextDeadline();
    if (deadline === null) return;
    const waitMs = Math.max(1, deadline - performance.now());
    // Timers are limited to 2^31 ms and may fire early: then it is armed again.
    this.#timer = setTimeout(() => this.#take({ kind: "tick" }), Math.min(waitMs, 2e9));
  }

  #perform(effect: RunEffect): void {
    switch (effect.kind) {
      case "send":
        this.#phases?.commandSent(effect.command, Date.now());
        this.#cores[effect.core]?.send(effect.command);
        return;
      case "kill":
        this.#cores[effect.core]?.kill();
        return;
      case "message":
        this.#options.on.message(effect.line);
        return;
      case "done":
        this.#finish();
    }
  }

  /** Before the job begins only its loading can be ended; the rest waits for it. */
  control(command: RunControl): void {
    if (command.kind === "stop") {
      if (this.#isReporting || this.#isStopped) this.#reporting?.hurry();
      this.#isStopped = true;
    }
    if (this.#machine !== undefined) {
      this.#take({ kind: "control", control: command });
      return;
    }
    this.#asked.push(command);
    if (command.kind === "stop") this.#loadingFailed(interrupted());
  }

  #onEvent(core: number, event: CoreEvent): void {
    if (event.kind === "calls") this.#reporting?.calls(event);
    else if (this.#machine === undefined) this.#loading?.(core, event);
    else {
      this.#phases?.eventReceived(event, Date.now());
      this.#take({ kind: "event", core, event });
    }
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
}

function interrupted(): RunError {
  return new RunError("interrupted before the run began", 130);
}
