/**
 * An executor core: accepts commands, runs one execution at a time, answers with events. It is independent of the
 * transport (`core-main.ts` puts it behind a pipe) and of other cores.
 */

import { resolve as resolvePath } from "node:path";
import { deepFreeze } from "../core/base/freeze.ts";
import type {
  CoreCommand,
  CoreEvent,
  CoreVitals,
  PartFault,
  Problem,
} from "../core/load/job/core-messages.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { WorkflowManifest } from "../core/load/job/manifest.ts";
import { unthrottled } from "../core/load/plan/load.ts";
import { constantFiles, prepareCalls } from "../protocols/protocol.ts";
import { manifestOf, type WorkflowDefinition } from "../workflow/definition.ts";
import { setMetricSink } from "../workflow/metrics.ts";
import { workflowsOf } from "../workflow/module.ts";
import { overrideManifest } from "../workflow/overrides.ts";
import { setSharedPort } from "../workflow/shared.ts";
import { AsideCalls } from "./aside-calls.ts";
import { compile } from "./compiled.ts";
import { setupContext } from "./context.ts";
import { Execution } from "./execution.ts";
import type { ExecutionEnd, ExecutionInputs } from "./execution-inputs.ts";
import { Faults } from "./faults.ts";
import { FeedSupply } from "./feeds.ts";
import { FlowRunner } from "./flow-runner.ts";
import { Iteration } from "./iteration.ts";
import { LagMonitor } from "./lag.ts";
import type { LeaseRequester } from "./leases.ts";
import { MixExecution } from "./mix-execution.ts";
import { OpenRequests } from "./open-requests.ts";
import { problemOf } from "./problem.ts";
import type { FrameOver } from "./recorder.ts";
import { Repeats } from "./repeats.ts";
import type { RunnerUser } from "./runner.ts";
import { UserSession } from "./session.ts";
import { TimeLimit, TimeLimitError } from "./time-limit.ts";
import { traceFlow } from "./trace.ts";

type Command<Kind extends CoreCommand["kind"]> = Extract<CoreCommand, { kind: Kind }>;
type Steering =
  | ("start" | "acknowledge" | "pause" | "resume" | "scale" | "level" | "stop")
  | ("lease" | "askAgain");

/** Outcome of one execution, or of one flow of a mix. */
interface PartEnd extends ExecutionEnd {
  readonly part: string | null;
}

export class Core {
  readonly #send: (event: CoreEvent) => void;
  readonly #lag = new LagMonitor();
  #number = 0;
  #folder = ".";
  #overrides: LoadOverrides = {};
  /** Share of single calls to sample; 0: none. */
  #sampledShare = 0;
  #definitions: readonly WorkflowDefinition[] = [];
  #execution: Execution | MixExecution | undefined;
  #executionId = -1;
  /** Time limit of the setup or teardown under way. */
  #aside: TimeLimit | undefined;
  readonly #requests: OpenRequests;
  readonly #repeats = new Repeats();

  constructor(send: (event: CoreEvent) => void) {
    this.#send = (event) => {
      this.#repeats.onEvent(event);
      send(event);
    };
    this.#requests = new OpenRequests(this.#send);
  }

  handle(command: CoreCommand): void {
    const again = this.#repeats.again(command);
    if (again === null) this.#carryOut(command);
    else for (const event of again) this.#send(event);
  }

  #carryOut(command: CoreCommand): void {
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
      case "sampleCalls":
        this.#sampledShare = command.share;
        return;
      case "shared":
        this.#requests.onShared(command);
        return;
      case "trace":
        void this.#trace(command);
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
        execution?.start(command.setup, command.planMs);
        return;
      case "acknowledge":
        this.#part(command.part)?.recorder.acknowledged(command.frame);
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
        if (this.#requests.onLease(command))
          execution?.leaseGranted(command.name, command.from, command.to, command.last);
        return;
      case "askAgain":
        this.#requests.again();
    }
  }

  async #load(command: Command<"load">): Promise<void> {
    this.#number = command.core;
    this.#folder = resolvePath(command.folder);
    this.#overrides = command.overrides;
    setSharedPort((request) => this.#requests.ask(request));
    Object.assign(process.env, command.overrides.env);
    try {
      const module: unknown = await import(command.bundle);
      this.#definitions = workflowsOf(module, command.overrides.only);
      const manifests = this.#definitions.map((definition) => this.#manifest(definition));
      await this.#declare(this.#definitions);
      this.#send({ kind: "loaded", manifests });
    } catch (error) {
      this.#send({ kind: "loadFailed", problem: { ...problemOf(error), mistake: true } });
    }
  }

  async #declare(definitions: readonly WorkflowDefinition[]): Promise<void> {
    const reports = new Set(definitions.flatMap((definition) => definition.reports));
    const files = new Set(constantFiles());
    const parts = definitions.flatMap(({ mix }) => mix.map(({ definition }) => definition));
    for (const { feeds } of [...definitions, ...parts])
      for (const feed of feeds.values())
        for (const file of await feed.files(this.#folder)) files.add(file);
    this.#send({ kind: "declared", reports: [...reports], files: [...files] });
  }

  async #trace({ workflow }: Command<"trace">): Promise<void> {
    const say = (line: string): void => this.#send({ kind: "log", line, isComplaint: false });
    try {
      const definition = this.#definition(workflow);
      const completed = await traceFlow(definition, this.#overrides, this.#folder, say);
      this.#send({ kind: "traced", problem: null, completed });
    } catch (error) {
      this.#send({ kind: "traced", problem: problemOf(error), completed: false });
    }
  }

  #manifest(definition: WorkflowDefinition): WorkflowManifest {
    return overrideManifest(manifestOf(definition), this.#overrides);
  }

  async #prepare(command: Command<"prepare">): Promise<void> {
    const { execution: id } = command;
    // A new execution supersedes the previous one: nobody would count it, or could stop it.
    this.#execution?.stop();
    this.#requests.prepare();
    this.#executionId = id;
    this.#execution = undefined;
    try {
      const definition = this.#definition(command.workflow);
      const isMix = definition.mix.length > 0;
      const made = isMix
        ? await this.#prepareMix(definition, command)
        : await this.#prepareOne(definition, command);
      this.#execution = made;
      for (const part of made.parts) part.feeds.prefetch();
      setMetricSink(made instanceof MixExecution ? made.metrics : made.recorder);
      this.#send({ kind: "prepared", execution: id });
    } catch (error) {
      this.#send({ kind: "failed", execution: id, problem: problemOf(error) });
    }
  }

  async #prepareOne(
    definition: WorkflowDefinition,
    command: Command<"prepare">,
  ): Promise<Execution> {
    const inputs = await this.#inputs(definition, this.#manifest(definition), command, "");
    const finished = (ends: readonly PartEnd[]): void => this.#finished(command.execution, ends);
    return this.#newExecution(command.execution, inputs, null, (end) => finished([end]));
  }

  async #prepareMix(
    definition: WorkflowDefinition,
    command: Command<"prepare">,
  ): Promise<MixExecution> {
    const { execution: id, share } = command;
    const manifest = this.#manifest(definition);
    const mix = new MixExecution({
      name: definition.name,
      plan: share.part?.load ?? manifest.load,
      warmupMs: manifest.warmupMs,
      share,
      pace: definition.pace,
      weights: definition.mix.map(({ weight }) => weight),
      seed: this.#overrides.seed ?? "",
      requester: this.#requester(id),
      lag: this.#lag,
    });
    const ends: PartEnd[] = [];
    const ended = (end: PartEnd): void => {
      ends.push(end);
      if (ends.length === mix.parts.length) this.#finished(id, ends);
    };
    for (const [at, part] of definition.mix.entries()) {
      const { name } = part.definition;
      const inputs = await this.#inputs(part.definition, manifest, command, `${name}/`);
      const plan = unthrottled(inputs.plan);
      const workflow = mix.followed(at, inputs.workflow);
      const own = { ...inputs, workflow, plan, lag: mix.lagOf(at), driver: mix.driverOf(at) };
      mix.parts.push(this.#newExecution(id, own, name, ended));
    }
    return mix;
  }

  #requester(execution: number): LeaseRequester {
    return {
      request: (name, size) => this.#requests.lease(execution, name, size),
    };
  }

  /** Inputs of an execution of this definition, with the load and times of the manifest. */
  async #inputs(
    definition: WorkflowDefinition,
    manifest: WorkflowManifest,
    { context, execution, share }: Command<"prepare">,
    owner: string,
  ): Promise<ExecutionInputs> {
    const workflow = compile(definition, this.#overrides);
    const calls = workflow.steps.flatMap(({ call }) => call ?? []);
    await prepareCalls(calls, { settings: workflow.settings, folder: this.#folder });
    const requester = this.#requester(execution);
    const seed = `${this.#overrides.seed ?? ""}/${definition.name}`;
    const plan = share.part?.load ?? manifest.load;
    const counted = plan.kind === "shared" || plan.kind === "perUser";
    const where = { folder: this.#folder, share, seed, requester, owner, counted };
    return {
      workflow,
      plan,
      warmupMs: manifest.warmupMs,
      gracefulStopMs: manifest.gracefulStopMs,
      share,
      core: this.#number,
      used: usedValues(definition, context),
      feeds: await FeedSupply.load(definition.feeds, where),
      lag: this.#lag,
      seed: this.#overrides.seed ?? "",
    };
  }

  #newExecution(
    id: number,
    inputs: ExecutionInputs,
    part: string | null,
    finished: (end: PartEnd) => void,
  ): Execution {
    const made: Execution = new Execution(inputs, {
      ...this.#requester(id),
      complain: (line) => this.#send({ kind: "log", line, isComplaint: true }),
      abort: (reason) => this.#abort(id, reason),
      frame: () => this.#frame(id, made, part, "window"),
      failed: (problem) => {
        // Calls may have been made before.
        this.#frame(id, made, part, "load");
        setMetricSink(undefined);
        this.#send({ kind: "failed", execution: id, problem });
      },
      finished: (end) => {
        this.#frame(id, made, part, "load");
        finished({ ...end, part });
      },
    });
    if (this.#sampledShare > 0)
      made.recorder.sampleCalls(this.#sampledShare, inputs.workflow.definition.name);
    return made;
  }

  #frame(execution: number, made: Execution, part: string | null, over: FrameOver): void {
    const [bytes, health] = [made.frame(over), this.#vitals(made)];
    this.#send({ kind: "frame", execution, part, bytes, health });
    const sampled = made.recorder.sampledCalls();
    if (sampled !== null) this.#send({ kind: "calls", ...sampled });
  }

  /** Called when every part has sent its last frame. */
  #finished(execution: number, ends: readonly PartEnd[]): void {
    if (execution === this.#executionId) setMetricSink(undefined);
    this.#send({
      kind: "finished",
      execution,
      provided: Object.assign({}, ...ends.map(({ provided }) => provided)),
      notes: ends.flatMap(({ notes }) => notes),
      counts: ends.flatMap(({ counts }) => counts),
      faults: ends.flatMap(({ faults, part }) => faults.map((fault) => ({ ...fault, part }))),
    });
  }

  #vitals(execution: Execution): CoreVitals {
    return this.#lag.vitals(execution.activeUsers);
  }

  async #setup({ execution }: Command<"setup">): Promise<void> {
    try {
      const value = await this.#setups();
      this.#send({ kind: "setupDone", execution, value });
    } catch (error) {
      // Calls may have been made before.
      for (const made of this.#execution?.parts ?? [])
        this.#frame(execution, made, this.#partOf(made), "all");
      this.#send({ kind: "failed", execution, problem: setupProblem(error) });
    }
  }

  /** Name of a flow of a mix; null for a single workflow. */
  #partOf(made: Execution): string | null {
    return this.#execution === made ? null : made.workflow.definition.name;
  }

  /** Runs teardown for every flow of a mix, even if another one fails. */
  async #teardown({ execution: id, setup }: Command<"teardown">): Promise<void> {
    const execution = this.#execution ?? unprepared();
    const reported: PartFault[] = [];
    for (const made of execution.parts) {
      const { name } = made.workflow.definition;
      const [part, own] =
        execution instanceof Execution
          ? [null, setup]
          : [name, (Object(setup) as Readonly<Record<string, unknown>>)[name]];
      const faults = new Faults();
      try {
        await this.#beside(made, "teardown", own);
      } catch (error) {
        faults.failed("teardown", error);
      }
      reported.push(...faults.list.map((fault) => ({ ...fault, part })));
      // Calls may have been made.
      this.#frame(id, made, part, "all");
    }
    this.#send({ kind: "tornDown", execution: id, faults: reported });
  }

  /** Runs setup for every flow of a mix in turn and returns the results by name. */
  async #setups(): Promise<unknown> {
    const execution = this.#execution ?? unprepared();
    if (execution instanceof Execution) return this.#beside(execution, "setup", undefined);
    const values: Record<string, unknown> = {};
    for (const part of execution.parts)
      values[part.workflow.definition.name] = await this.#beside(part, "setup", undefined);
    return values;
  }

  /** Runs a function of the workflow or flow with clients of its own, closed afterwards. */
  async #beside(
    execution: Execution,
    what: "setup" | "teardown",
    setup: unknown,
  ): Promise<unknown> {
    const { definition, flow, settings } = execution.workflow;
    if ((flow ?? definition)[what] === undefined) return undefined;
    const id = this.#executionId;
    const { setupMs, teardownMs } = definition.limits;
    const limit = new TimeLimit(what, what === "setup" ? setupMs : teardownMs);
    const session = new UserSession(settings);
    this.#aside = limit;
    const abort = (reason: string): void => this.#abort(id, reason);
    const runner = flow === null ? null : new FlowRunner(aloneWith(execution, session), flow);
    const calls = new AsideCalls(execution, what);
    if (runner === null) session.listener = calls;
    try {
      if (runner !== null) return await limit.run(() => runner.beside(what, limit));
      const context = setupContext(session, { limit, abort }, setup);
      return await limit.run(() => definition[what]?.(context));
    } finally {
      this.#aside = undefined;
      runner?.cut();
      calls.cut(session.takeUnderWay());
      session.close();
    }
  }

  #abort(execution: number, reason: string): void {
    this.#send({ kind: "abort", execution, reason: String(reason) });
  }

  /** Returns the flow of a mix, or the only part. */
  #part(name: string | null): Execution | undefined {
    const parts = this.#execution?.parts ?? [];
    return name === null
      ? parts[0]
      : parts.find(({ workflow }) => workflow.definition.name === name);
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

/** A user without load, for setup and teardown. */
function aloneWith(host: Execution, session: UserSession): RunnerUser {
  const iteration = new Iteration(host.recorder, false);
  return { id: session.user, host, session, iteration, done: () => undefined };
}

/** Applies each `use` hook to the received values; missing keys take their defaults. (CTX-2) */
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
