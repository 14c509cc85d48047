/**
 * An executor core: takes commands, runs one execution at a time, answers with events. It knows
 * nothing of how they travel (`core-main.ts` puts it behind a pipe) and nothing of other cores.
 */

import { resolve as resolvePath } from "node:path";
import type { WorkflowManifest } from "../core/run/job/manifest.ts";
import { prepareCalls } from "../protocols/protocol.ts";
import { manifestOf, type WorkflowDefinition } from "../workflow/definition.ts";
import { setMetricSink } from "../workflow/metrics.ts";
import { workflowsOf } from "../workflow/module.ts";
import { type LoadOverrides, overrideManifest } from "../workflow/overrides.ts";
import { compile } from "./compiled.ts";
import { setupContext } from "./context.ts";
import { Execution } from "./execution.ts";
import { FeedSupply } from "./feeds.ts";
import { LagMonitor } from "./lag.ts";
import type { CoreCommand, CoreEvent, CoreVitals } from "./messages.ts";
import { problemOf } from "./problem.ts";
import { UserSession } from "./session.ts";

type Command<Kind extends CoreCommand["kind"]> = Extract<CoreCommand, { kind: Kind }>;

export class Core {
  readonly #send: (event: CoreEvent) => void;
  readonly #lag = new LagMonitor();
  #number = 0;
  #folder = ".";
  #overrides: LoadOverrides = {};
  #definitions: readonly WorkflowDefinition[] = [];
  #execution: Execution | undefined;
  #executionId = -1;

  constructor(send: (event: CoreEvent) => void) {
    this.#send = send;
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
      case "exit":
        return;
      default:
        if (command.execution === this.#executionId) this.#steer(command);
    }
  }

  #steer(command: Command<"start" | "pause" | "resume" | "scale" | "stop" | "lease">): void {
    const execution = this.#execution;
    switch (command.kind) {
      case "start":
        execution?.start(command.setup);
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
      case "stop":
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
          bytes: made.frame(),
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
      const definition = this.#execution?.workflow.definition;
      const value = await this.#aside(undefined, (context) => definition?.setup?.(context));
      this.#send({ kind: "setupDone", execution, value });
    } catch (error) {
      const problem = problemOf(error);
      this.#send({
        kind: "failed",
        execution,
        problem: { ...problem, message: `setup threw: ${problem.message}` },
      });
    }
  }

  async #teardown({ execution, setup }: Command<"teardown">): Promise<void> {
    try {
      const definition = this.#execution?.workflow.definition;
      await this.#aside(setup, (context) => definition?.teardown?.(context));
      this.#send({ kind: "tornDown", execution, problem: null });
    } catch (error) {
      this.#send({ kind: "tornDown", execution, problem: problemOf(error) });
    }
  }

  /** Runs a function of the workflow with clients of its own, closed afterwards. */
  async #aside(
    setup: unknown,
    work: (context: ReturnType<typeof setupContext>) => unknown,
  ): Promise<unknown> {
    const session = new UserSession(this.#execution?.workflow.settings ?? compileSettings());
    try {
      return await work(setupContext(session, new AbortController().signal, setup));
    } finally {
      session.close();
    }
  }

  #definition(name: string): WorkflowDefinition {
    const found = this.#definitions.find((definition) => definition.name === name);
    if (found === undefined) throw new Error(`workflow "${name}" is not in this bundle`);
    return found;
  }
}

function compileSettings(): never {
  throw new Error("no execution is prepared");
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
    used[name] = value(values);
  }
  return used;
}
