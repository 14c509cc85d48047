/** Parts that a flow adds to a workflow's definition: functions instead of layers, and the handling of calls. */

import { DefinitionError } from "./errors.ts";
import { Feed } from "./feed.ts";
import type { CallingContext, FlowContext, UserSetupContext } from "./flow-context.ts";

/** Options of flows that other workflows do not have. */
export interface OwnFlowOptions {
  /**
   * At the end of the plan no new call begins; "iteration" lets bodies finish within the graceful stop. "call" by
   * default.
   */
  readonly finish?: "call" | "iteration";
  /** Every failed call ends its iteration, unless the step says otherwise. */
  readonly required?: boolean;
  /** False drops the bodies of answers, unless target or call override it. */
  readonly readBody?: boolean;
  /** Names of steps, checks and groups that only the running body knows: "item-*". */
  readonly steps?: readonly string[];
  /** Tags of steps that make a series of their own. */
  readonly series?: readonly string[];
}

/** Functions of a flow with their types erased: names and types are checked where they are written. */
interface FlowFunctions {
  readonly body: (context: FlowContext) => unknown;
  readonly setup: ((context: CallingContext) => unknown) | undefined;
  readonly userSetup: ((context: UserSetupContext) => unknown) | undefined;
  readonly userTeardown:
    | ((context: UserSetupContext & { readonly state: unknown }) => unknown)
    | undefined;
  readonly teardown:
    | ((context: CallingContext & { readonly setup: unknown }) => unknown)
    | undefined;
}

export interface FlowPart extends FlowFunctions {
  readonly finish: "call" | "iteration";
  readonly required: boolean;
  readonly readBody: boolean;
  readonly stepPatterns: readonly string[];
  readonly series: readonly string[];
  readonly feeds: ReadonlyMap<string, Feed<unknown>>;
}

const FUNCTION_NAMES = ["setup", "userSetup", "userTeardown", "teardown"] as const;
const OWN_NAMES: Readonly<Record<keyof OwnFlowOptions, true>> = {
  finish: true,
  required: true,
  readBody: true,
  steps: true,
  series: true,
};
const NAMES = new Set<string>([...FUNCTION_NAMES, ...Object.keys(OWN_NAMES), "data"]);

/** The options that every workflow has, without those of flows. */
export function commonOptionsOf(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !NAMES.has(name)));
}

function feedsOf(options: object, where: string): ReadonlyMap<string, Feed<unknown>> {
  const given: unknown = "data" in options ? options.data : undefined;
  if (given === undefined) return new Map();
  if (typeof given !== "object" || given === null)
    throw new DefinitionError(
      `${where}: data is an object of feeds: { user: feed.csv("users.csv") }`,
    );
  return new Map(
    Object.entries(given).map(([name, feed]: [string, unknown]) => {
      if (!(feed instanceof Feed))
        throw new DefinitionError(`${where}: data.${name} is no feed: write feed.rows([…])`);
      return [name, feed as Feed<unknown>];
    }),
  );
}

export function flowPartOf(
  options: OwnFlowOptions & object,
  body: unknown,
  where: string,
): FlowPart {
  const { finish = "call", readBody = true, required = false, series = [], steps = [] } = options;
  if (finish !== "call" && finish !== "iteration")
    throw new DefinitionError(
      `${where}: finish is "${String(finish)}"; it must be call or iteration`,
    );
  if (typeof body !== "function")
    throw new DefinitionError(`${where} needs a body: async ({ step }) => { … }`);
  return {
    ...functionsOf(options, where),
    body: body as FlowPart["body"],
    finish,
    required,
    readBody,
    stepPatterns: steps,
    series,
    feeds: feedsOf(options, where),
  };
}

function functionsOf(options: object, where: string): Omit<FlowFunctions, "body"> {
  const given = options as Partial<Record<(typeof FUNCTION_NAMES)[number], unknown>>;
  for (const name of FUNCTION_NAMES) {
    if (given[name] !== undefined && typeof given[name] !== "function")
      throw new DefinitionError(`${where}: ${name} is a function: async ({ step }) => { … }`);
  }
  const { setup, teardown, userSetup, userTeardown } = options as Omit<FlowFunctions, "body">;
  return { setup, teardown, userSetup, userTeardown };
}
