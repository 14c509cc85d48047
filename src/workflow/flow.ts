/**
 * Flows: a user's journey as a function. Steps happen in the order of the function, with `if`, `for` and helpers as
 * anywhere else; every call that `step` performs is measured.
 *
 *   export default flow("shop", { vus: 20, duration: "30s" }, async ({ step, pause }) => {
 *     await step("home", shop.get("/"));
 *     await pause("1s", "3s");
 *   });
 */

import { WorkflowDefinition } from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import type { Feed } from "./feed.ts";
import type { CallingContext, FlowContext, UserSetupContext } from "./flow-context.ts";
import { commonOptionsOf, flowPartOf, type OwnFlowOptions } from "./flow-part.ts";
import type { LoadOptions } from "./load-options.ts";
import type { CommonOptions, JudgedOptions, WorkflowOptions } from "./options.ts";
import type {
  CheckedThresholds,
  KnownNames,
  MetricList,
  MetricsOf,
  ThresholdList,
} from "./threshold-types.ts";

type MaybePromise<Value> = Value | Promise<Value>;
type Feeds = Readonly<Record<string, Feed<unknown>>>;
type Rows<Data> = {
  readonly [Name in keyof Data]: Data[Name] extends Feed<infer Row> ? Row : never;
};
type None = Record<never, never>;

/** `setup` comes before `userSetup`: types are inferred in that order. */
interface FlowFunctions<Data, Setup, State> {
  /** Each iteration gets one row of each feed as `data.<name>`. */
  readonly data?: Data;
  /** Runs once, before the first user: its return value is `setup` everywhere. */
  readonly setup?: (context: CallingContext) => MaybePromise<Setup>;
  /** Runs once per user, before its first iteration: its return value is `state`. */
  readonly userSetup?: (context: UserSetupContext<Rows<Data>, Setup>) => MaybePromise<State>;
  /** Runs once per user, after its last iteration. */
  readonly userTeardown?: (
    context: UserSetupContext<Rows<Data>, Setup> & { readonly state: State },
  ) => MaybePromise<unknown>;
  /** Runs once, after the last user. */
  readonly teardown?: (
    context: CallingContext & { readonly setup: Setup },
  ) => MaybePromise<unknown>;
}

/** Everything but the load: an interface, so that the compiler names it when an option is wrong. */
interface FlowSettings<Data, Setup, State, Thresholds, Metrics>
  extends CommonOptions,
    OwnFlowOptions,
    JudgedOptions<Thresholds, Metrics>,
    FlowFunctions<Data, Setup, State> {}

export type FlowOptions<
  Data = None,
  Setup = undefined,
  State = undefined,
  Thresholds = ThresholdList,
  Metrics = MetricList,
> = LoadOptions & FlowSettings<Data, Setup, State, Thresholds, Metrics>;

type Body<Data, Setup, State> = (
  context: FlowContext<Rows<Data>, State, Setup>,
) => MaybePromise<void>;

export class Flow<Name extends string = string> {
  readonly definition: WorkflowDefinition;
  /** Only for the compiler, which checks names in thresholds of mixes. */
  declare readonly nameType?: Name;

  constructor(definition: WorkflowDefinition) {
    this.definition = definition;
  }

  /** Sets the share of the iterations of a mix, relative to the other flows: `mix([a.weight(95), …])`. */
  weight(weight: number): WeightedFlow<Name> {
    if (typeof weight !== "number" || !(weight > 0) || !Number.isFinite(weight)) {
      const { name } = this.definition;
      throw new DefinitionError(
        `flow "${name}": weight is ${String(weight)}; it is a number above 0`,
      );
    }
    return { flow: this, weight };
  }
}

export interface WeightedFlow<Name extends string = string> {
  readonly flow: Flow<Name>;
  readonly weight: number;
}

export function flow<Name extends string>(
  name: Name,
  body: Body<None, undefined, undefined>,
): Flow<Name>;
export function flow<
  Name extends string,
  Data extends Feeds = None,
  Setup = undefined,
  State = undefined,
  const Metrics extends MetricList = MetricList,
  const Thresholds extends ThresholdList = ThresholdList,
>(
  name: Name,
  options: FlowOptions<
    Data,
    Setup,
    State,
    CheckedThresholds<Thresholds, KnownNames<string, string, MetricsOf<Metrics>>>,
    Metrics
  >,
  body: Body<Data, Setup, State>,
): Flow<Name>;
export function flow(name: string, ...rest: readonly unknown[]): Flow {
  const [options, body] = rest.length > 1 ? rest : [{}, rest[0]];
  if (typeof name !== "string" || name.trim() === "")
    throw new DefinitionError('a flow needs a name: flow("checkout", async ({ step }) => { … })');
  const where = `flow "${name}"`;
  if (typeof options !== "object" || options === null)
    throw new DefinitionError(`${where}: options are an object: { vus: 10, duration: "30s" }`);
  const part = flowPartOf(options, body, where);
  const common = commonOptionsOf(options) as WorkflowOptions;
  return new Flow(new WorkflowDefinition(name, common, part));
}
