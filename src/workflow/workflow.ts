/**
 * The builder users write with. Types carry everything: a step's name becomes a key of `results`, so `after` accepts
 * only steps declared before (no foreign steps, no cycles), and a function sees exactly the results of its `after`.
 * JavaScript users get the same errors at run time.
 */

import type { CallResult, PreparedCall } from "../protocols/protocol.ts";
import type { ProvideContext, SetupContext, StepContext } from "./context.ts";
import {
  isPreparedCall,
  type StepDefinition,
  type StepFunction,
  WorkflowDefinition,
} from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import { Feed } from "./feed.ts";
import type { LoadOptions } from "./load-options.ts";
import { declareMetric, type MetricKind } from "./metrics.ts";
import type { CommonOptions, JudgedOptions, WorkflowOptions } from "./options.ts";
import type {
  CheckedThresholds,
  KnownNames,
  MetricList,
  MetricsOf,
  ThresholdList,
} from "./threshold-types.ts";

type Empty = Record<never, never>;
type Name<Results> = keyof Results & string;
type MaybePromise<Value> = Value | Promise<Value>;
/** A duplicate name turns into a sentence that the compiler shows. */
type Fresh<N extends string, Results> = N extends keyof Results
  ? `"${N}" is already a step of this workflow`
  : N;

interface StepOptions<After extends string> {
  /** Names of steps that must be finished first. */
  readonly after?: readonly After[];
  readonly tags?: Readonly<Record<string, string>>;
}

export class Workflow<Results = Empty, Data = Empty, Used = Empty, Setup = undefined> {
  readonly definition: WorkflowDefinition;

  constructor(definition: WorkflowDefinition) {
    this.definition = definition;
  }

  /** A measured call: a prepared request, or a function that returns a protocol response. */
  step<N extends string, Result extends CallResult>(
    name: Fresh<N, Results>,
    call: PreparedCall<Result>,
  ): Workflow<Results & Record<N, Result>, Data, Used, Setup>;
  step<N extends string, Result extends CallResult>(
    name: Fresh<N, Results>,
    run: (context: StepContext<Empty, Data, Used, Setup>) => MaybePromise<Result>,
  ): Workflow<Results & Record<N, Result>, Data, Used, Setup>;
  step<N extends string, Result extends CallResult, After extends Name<Results> = never>(
    name: Fresh<N, Results>,
    options: StepOptions<After>,
    call: PreparedCall<Result>,
  ): Workflow<Results & Record<N, Result>, Data, Used, Setup>;
  step<N extends string, Result extends CallResult, After extends Name<Results> = never>(
    name: Fresh<N, Results>,
    options: StepOptions<After>,
    run: (context: StepContext<Pick<Results, After>, Data, Used, Setup>) => MaybePromise<Result>,
  ): Workflow<Results & Record<N, Result>, Data, Used, Setup>;
  step(name: string, ...rest: readonly unknown[]): unknown {
    return this.#add(name, "step", rest);
  }

  /** Work that is not measured: its result is available to later steps. */
  action<N extends string, Result>(
    name: Fresh<N, Results>,
    run: (context: StepContext<Empty, Data, Used, Setup>) => MaybePromise<Result>,
  ): Workflow<Results & Record<N, Result>, Data, Used, Setup>;
  action<N extends string, Result, After extends Name<Results> = never>(
    name: Fresh<N, Results>,
    options: StepOptions<After>,
    run: (context: StepContext<Pick<Results, After>, Data, Used, Setup>) => MaybePromise<Result>,
  ): Workflow<Results & Record<N, Result>, Data, Used, Setup>;
  action(name: string, ...rest: readonly unknown[]): unknown {
    return this.#add(name, "action", rest);
  }

  /** True or false once per iteration; throwing counts as false. Runs after the steps it names, or at the end. */
  check(name: string, test: (context: StepContext<Results, Data, Used, Setup>) => boolean): this;
  check<After extends Name<Results>>(
    name: string,
    options: { readonly after: readonly After[] },
    test: (context: StepContext<Pick<Results, After>, Data, Used, Setup>) => boolean,
  ): this;
  check(name: string, ...rest: readonly unknown[]): this {
    const [options, test] = rest.length > 1 ? rest : [{ after: [] }, rest[0]];
    if (typeof test !== "function")
      throw this.#error(`check "${name}" needs a function that returns true or false`);
    this.#fresh("check", name);
    const { after = [] } = options as { readonly after?: readonly string[] };
    this.#known(`check "${name}"`, after);
    this.definition.checks.push({ name, after, test: test as StepFunction });
    return this;
  }

  /** A number per iteration (for a rate: true or false), summed up under the metric's name. */
  metric(
    name: string,
    kind: MetricKind,
    value: (context: StepContext<Results, Data, Used, Setup>) => number | boolean | undefined,
  ): this {
    if (typeof value !== "function")
      throw this.#error(`metric "${name}" needs a function that returns a number`);
    this.#fresh("metric", name);
    declareMetric(name, kind);
    this.definition.metrics.push({ name, kind, value: value as StepFunction });
    return this;
  }

  /** Thresholds, written after the steps: here the compiler knows their names. */
  thresholds<const Thresholds extends ThresholdList>(
    ...thresholds: CheckedThresholds<Thresholds, KnownNames<string, Name<Results>>>
  ): this {
    this.definition.judge(thresholds as ThresholdList);
    return this;
  }

  /** Each iteration gets one row of the feed as `data.<name>`. */
  data<N extends string, Row>(
    name: N,
    feed: Feed<Row>,
  ): Workflow<Results, Data & Record<N, Row>, Used, Setup> {
    if (!(feed instanceof Feed))
      throw this.#error(`data "${name}" is no feed: write .data("${name}", feed.rows([…]))`);
    if (this.definition.feeds.has(name)) throw this.#error(`there are two feeds named "${name}"`);
    this.definition.feeds.set(name, feed);
    return this as unknown as Workflow<Results, Data & Record<N, Row>, Used, Setup>;
  }

  /** Runs after these workflows. */
  dependsOn(...workflows: readonly (string | { readonly definition: WorkflowDefinition })[]): this {
    for (const other of workflows) {
      const name = typeof other === "string" ? other : other?.definition?.name;
      if (typeof name !== "string")
        throw this.#error(`dependsOn takes workflows or their names, not ${typeof other}`);
      if (!this.definition.dependsOn.includes(name)) this.definition.dependsOn.push(name);
    }
    return this;
  }

  /** After the last iteration: a value for the named workflows, if they `use` it. */
  provide(
    key: string,
    options: { readonly to: readonly string[] },
    value: (context: ProvideContext<Results, Setup>) => unknown,
  ): this {
    if (this.definition.provides.some((other) => other.key === key))
      throw this.#error(`"${key}" is provided twice`);
    this.definition.provides.push({ key, to: options.to, value });
    return this;
  }

  /** Before the first iteration: values that other workflows provide, with defaults for missing ones. */
  use<N extends string, Keys extends Readonly<Record<string, unknown>>, Value = Keys>(
    name: N,
    options: { readonly from: readonly string[]; readonly keys: Keys },
    value?: (values: Keys) => Value,
  ): Workflow<Results, Data, Used & Record<N, Value>, Setup> {
    if (this.definition.uses.some((other) => other.name === name))
      throw this.#error(`"${name}" is used twice`);
    const make = (value ?? ((values: Keys) => values)) as (
      values: Readonly<Record<string, unknown>>,
    ) => unknown;
    this.definition.uses.push({ name, from: options.from, keys: options.keys, value: make });
    return this as unknown as Workflow<Results, Data, Used & Record<N, Value>, Setup>;
  }

  /** Runs once, before the first user: its return value (plain data) is `setup` everywhere. */
  setup<Value>(
    run: (context: SetupContext) => MaybePromise<Value>,
  ): Workflow<Results, Data, Used, Value> {
    this.definition.setup = run;
    return this as unknown as Workflow<Results, Data, Used, Value>;
  }

  /** Runs once, after the last user. */
  teardown(
    run: (context: SetupContext & { readonly setup: Setup }) => MaybePromise<unknown>,
  ): this {
    this.definition.teardown = run as (
      context: SetupContext & { readonly setup: unknown },
    ) => unknown;
    return this;
  }

  /** Runs once per virtual user, before its first iteration, whose rows it sees; not measured. */
  userSetup(run: (context: StepContext<Empty, Data, Used, Setup>) => MaybePromise<unknown>): this {
    this.definition.userSetup = run as StepFunction;
    return this;
  }

  /** Runs once per virtual user, after its last iteration; not measured. */
  userTeardown(
    run: (context: StepContext<Empty, Data, Used, Setup>) => MaybePromise<unknown>,
  ): this {
    this.definition.userTeardown = run as StepFunction;
    return this;
  }

  #add(name: string, kind: StepDefinition["kind"], rest: readonly unknown[]): this {
    const [options, run] = rest.length > 1 ? rest : [{}, rest[0]];
    if (typeof name !== "string" || name.trim() === "") throw this.#error(`a ${kind} needs a name`);
    this.#fresh(kind, name);
    const callable = typeof run === "function" || (kind === "step" && isPreparedCall(run));
    if (!callable) {
      const wanted = kind === "step" ? "a prepared request or a function" : "a function";
      throw this.#error(
        `${kind} "${name}" needs ${wanted}, not ${run === null ? "null" : typeof run}`,
      );
    }
    const { after = [], tags = {} } = options as StepOptions<string>;
    this.#known(`${kind} "${name}"`, after);
    this.definition.steps.push({ name, kind, after, tags, run: run as StepFunction });
    return this;
  }

  /** Names in results and thresholds are unique. (API-3) */
  #fresh(kind: string, name: string): void {
    const { checks, metrics, steps } = this.definition;
    const taken = [
      ...steps,
      ...checks.map((check) => ({ ...check, kind: "check" })),
      ...metrics.map((metric) => ({ ...metric, kind: "metric" })),
    ].find((other) => other.name === name);
    if (taken === undefined) return;
    throw this.#error(
      taken.kind === kind
        ? `there are two ${kind}s named "${name}"; names must differ`
        : `"${name}" is the name of a ${taken.kind} already, so no ${kind} can have it`,
    );
  }

  /** Steps are declared in order, so a name in `after` must have been declared before. */
  #known(who: string, after: readonly string[]): void {
    if (!Array.isArray(after))
      throw this.#error(`${who}: after is a list of names: after: [${JSON.stringify(after)}]`);
    const names = this.definition.steps.map((step) => step.name);
    for (const name of after) {
      if (names.includes(name)) continue;
      const known =
        names.length === 0 ? "no step is declared before it" : `known so far: ${names.join(", ")}`;
      throw this.#error(
        `${who} waits for "${name}", which is not a step of this workflow (${known})`,
      );
    }
  }

  #error(message: string): DefinitionError {
    return new DefinitionError(`workflow "${this.definition.name}": ${message}`);
  }
}

/** Begins a workflow: a name, and its load. */
export function workflow<
  const Metrics extends MetricList = MetricList,
  const Thresholds extends ThresholdList = ThresholdList,
>(
  name: string,
  options: LoadOptions &
    CommonOptions &
    JudgedOptions<
      CheckedThresholds<Thresholds, KnownNames<string, string, MetricsOf<Metrics>>>,
      Metrics
    >,
): Workflow {
  return new Workflow(new WorkflowDefinition(name, options as WorkflowOptions));
}
