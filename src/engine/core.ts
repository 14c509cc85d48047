/**
 * An executor core: takes commands, runs one execution at a time, answers with events. It knows
 * nothing of how they travel (`core-main.ts` puts it behind a pipe) and nothing of other cores.
 */

import { resolve as resolvePath } from "node:path";
import { deepFreeze } from "../core/base/freeze.ts";
import type { WorkflowManifest } from "../core/run/job/manifest.ts";
import type { SharedAnswer, SharedRequest } from "../core/run/job/shared-values.ts";
import { prepareCalls } from "../protocols/protocol.ts";
import { manifestOf, type WorkflowDefinition } from "../workflow/definition.ts";
import { setMetricSink } from "../workflow/metrics.ts";
import { workflowsOf } from "../workflow/module.ts";
import { type LoadOverrides, overrideManifest } from "../workflow/overrides.ts";
import { setSharedPort } from "../workflow/shared.ts";
import { compile } from "./compiled.ts";
import { setupContext } from "./context.ts";
import { Execution } from "./execution.ts";
import { Faults } from "./faults.ts";
import { FeedSupply } from "./feeds.ts";
import { FlowRunner } from "./flow-runner.ts";
import { Iteration } from "./iteration.ts";
import { LagMonitor } from "./lag.ts";
import type { CoreCommand, CoreEvent, CoreVitals, Problem } from "./messages.ts";
import { problemOf } from "./problem.ts";
import type { RunnerUser } from "./runner.ts";
import { UserSession } from "./session.ts";
import { TimeLimit, TimeLimitError } from "./time-limit.ts";

type Command<Kind extends CoreCommand["kind"]> = Extract<CoreCommand, { kind: Kind }>;
type Steering = "start" | "acknowledge" | "pause" | "resume" | "scale" | "level" | "stop" | "lease";

export class Core {
  readonly #send: (event: CoreEvent) => void;
  readonly #lag = new LagMonitor();
  #number = 0;
  #folder = ".";
  #overrides: LoadOverrides = {};
  #definitions: readonly WorkflowDefinition[] = [];
  #execution: Execution | undefined;
  #executionId = -1;
  /** Of the set-up or tear-down under way. */
  #aside: TimeLimit | undefined;

  /** Requests for what all cores share, until they are answered. */
  readonly #asked = new Map<number, (answer: SharedAnswer) => void>();
  #asks = 0;

  constructor(send: (event: CoreEvent) => void) {
    this.#send = send;
  }

  #ask(request: SharedRequest): Promise<SharedAnswer> {
    const id = this.#asks++;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.#send({ kind: "shared", id, request });
    });
  }

  handle(command: CoreCommand): void {
    switch (command.kind) {
      case "load":
        void this.#load(command);
        return;
      case "prepare":
        void this.#prepare(command);
        return;
      case "setup":
        void this.#setup(command);
        return;
      case "teardown":
        void this.#teardown(command);
        return;
      case "shared":
        this.#asked.get(command.id)?.(command.answer);
        this.#asked.delete(command.id);
        return;
      case "exit":
        return;
      default:
        if (command.execution === this.#executionId) this.#steer(command);
    }
  }

  #steer(command: Command<Steering>): void {
    const execution = this.#execution;
    switch (command.kind) {
      case "start":
        execution?.start(command.setup);
        return;
      case "acknowledge":
        execution?.recorder.acknowledged(command.frame);
        return;
      case "pause":
        execution?.pause();
        return;
      case "resume":
        execution?.resume();
        return;
      case "scale":
        execution?.scale(command.factor);
        return;
      case "level":
        execution?.level(command.load);
        return;
      case "stop":
        this.#aside?.abort(new Error("the run was stopped"));
        execution?.stop();
        return;
      case "lease":
        execution?.leaseGranted(command.name, command.from, command.to, command.last);
    }
  }

  async #load(command: Command<"load">): Promise<void> {
    this.#number = command.core;
    this.#folder = resolvePath(command.folder);
    this.#overrides = command.overrides;
    setSharedPort((request) => this.#ask(request));
    try {
      const module: unknown = await import(command.bundle);
      this.#definitions = workflowsOf(module);
      const manifests = this.#definitions.map((definition) => this.#manifest(definition));
      this.#send({ kind: "loaded", manifests });
    } catch (error) {
      this.#send({ kind: "loadFailed", problem: { ...problemOf(error), mistake: true } });
    }
  }

  #manifest(definition: WorkflowDefinition): WorkflowManifest {
    return overrideManifest(manifestOf(definition), this.#overrides);
  }

  async #prepare(command: Command<"prepare">): Promise<void> {
    const { execution: id, share } = command;
    this.#executionId = id;
    this.#execution = undefined;
    try {
      const definition = this.#definition(command.workflow);
      const manifest = this.#manifest(definition);
      const workflow = compile(definition, this.#overrides);
      const requester = {
        request: (name: string, size: number) =>
          this.#send({ kind: "lease", execution: id, name, size }),
      };
      const calls = workflow.steps.flatMap(({ call }) => call ?? []);
      await prepareCalls(calls, { settings: workflow.settings, folder: this.#folder });
      const feeds = await FeedSupply.load(definition.feeds, {
        folder: this.#folder,
        cores: share.count,
        seed: `${this.#overrides.seed ?? ""}/${definition.name}`,
        requester,
      });
      const used = usedValues(definition, command.context);
      const inputs = {
        workflow,
        plan: manifest.load,
        warmupMs: manifest.warmupMs,
        gracefulStopMs: manifest.gracefulStopMs,
        share,
        core: this.#number,
        used,
        feeds,
        lag: this.#lag,
        seed: this.#overrides.seed ?? "",
      };
      this.#execution = this.#newExecution(id, inputs, requester);
      this.#send({ kind: "prepared", execution: id });
    } catch (error) {
      this.#send({ kind: "failed", execution: id, problem: problemOf(error) });
    }
  }

  #newExecution(
    id: number,
    inputs: ConstructorParameters<typeof Execution>[0],
    requester: { request(name: string, size: number): void },
  ): Execution {
    const made: Execution = new Execution(inputs, {
      ...requester,
      log: (line) => this.#send({ kind: "log", line }),
      abort: (reason) => this.#abort(id, reason),
      frame: () =>
        this.#send({
          kind: "frame",
          execution: id,
          bytes: made.frame(),
          health: this.#vitals(made),
        }),
      failed: (problem) => {
        setMetricSink(undefined);
        this.#send({ kind: "failed", execution: id, problem });
      },
      finished: (end) => {
        setMetricSink(undefined);
        this.#send({
          kind: "finished",
          execution: id,
          bytes: made.frame("load"),
          health: this.#vitals(made),
          ...end,
        });
      },
    });
    setMetricSink(made.recorder);
    return made;
  }

  #vitals(execution: Execution): CoreVitals {
    return this.#lag.vitals(execution.activeUsers);
  }

  async #setup({ execution }: Command<"setup">): Promise<void> {
    try {
      const value = await this.#besides("setup", undefined);
      this.#send({ kind: "setupDone", execution, value });
    } catch (error) {
      this.#send({ kind: "failed", execution, problem: setupProblem(error) });
    }
  }

  async #teardown({ execution, setup }: Command<"teardown">): Promise<void> {
    const faults = new Faults();
    try {
      await this.#besides("teardown", setup);
    } catch (error) {
      faults.failed("teardown", error);
    }
    const made = this.#execution ?? unprepared();
    const health = this.#vitals(made);
    const bytes = made.frame("all");
    this.#send({ kind: "tornDown", execution, faults: faults.list(), bytes, health });
  }

  /** Runs a function of the workflow or flow with clients of its own, closed afterwards. */
  async #besides(what: "setup" | "teardown", setup: unknown): Promise<unknown> {
    const execution = this.#execution ?? unprepared();
    const { definition, flow, settings } = execution.workflow;
    if ((flow ?? definition)[what] === undefined) return undefined;
    const id = this.#executionId;
    const { setupMs, teardownMs } = definition.limits;
    const limit = new TimeLimit(what, what === "setup" ? setupMs : teardownMs);
    const session = new UserSession(settings);
    this.#aside = limit;
    const abort = (reason: string): void => this.#abort(id, reason);
    try {
      if (flow !== null) {
        const runner = new FlowRunner(aloneWith(execution, session), flow);
        return await limit.run(() => runner.beside(what, limit));
      }
      const context = setupContext(session, { limit, abort }, setup);
      return await limit.run(() => definition[what]?.(context));
    } finally {
      this.#aside = undefined;
      session.close();
    }
  }

  #abort(execution: number, reason: string): void {
    this.#send({ kind: "abort", execution, reason: String(reason) });
  }

  #definition(name: string): WorkflowDefinition {
    const found = this.#definitions.find((definition) => definition.name === name);
    if (found === undefined) throw new Error(`workflow "${name}" is not in this bundle`);
    return found;
  }
}

function setupProblem(error: unknown): Problem {
  const problem = problemOf(error);
  if (error instanceof TimeLimitError) return problem;
  return { ...problem, message: `setup threw: ${problem.message}` };
}

function unprepared(): never {
  throw new Error("no execution is prepared");
}

/** A user of no load: it runs what is done once for all. */
function aloneWith(host: Execution, session: UserSession): RunnerUser {
  const iteration = new Iteration(host.recorder, false);
  return { id: session.user, host, session, iteration, done: () => undefined };
}

/** What each `use` hook makes of the values that came; missing keys take their defaults. (CTX-2) */
function usedValues(
  definition: WorkflowDefinition,
  context: Command<"prepare">["context"],
): Record<string, unknown> {
  const used: Record<string, unknown> = {};
  for (const { from, keys, name, value } of definition.uses) {
    const values: Record<string, unknown> = { ...keys };
    for (const source of from) {
      for (const [key, given] of Object.entries(context[source] ?? {}))
        if (key in keys) values[key] = given;
    }
    used[name] = deepFreeze(value(deepFreeze(values)));
  }
  return used;
}
