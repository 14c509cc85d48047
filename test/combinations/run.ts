/** Builds the workflows of a combination, runs them on real cores, and gives what there is to compare. */

import type { RunSummary } from "../../src/core/load/results/model.ts";
import { http } from "../../src/protocols/http1/index.ts";
import { InProcessRun } from "../../src/runner/testing/in-process-run.ts";
import type { StepContext } from "../../src/workflow/context.ts";
import { measure } from "../../src/workflow/custom-result.ts";
import { type Feed, feed } from "../../src/workflow/feed.ts";
import { flow } from "../../src/workflow/flow.ts";
import type { UserSetupContext } from "../../src/workflow/flow-context.ts";
import type { WorkflowOptions } from "../../src/workflow/options.ts";
import { workflow } from "../../src/workflow/workflow.ts";
import {
  type Combination,
  HANGING_STOP_MS,
  PACING_MS,
  PATIENT,
  type Part,
  ROWS_ENOUGH,
  ROWS_FEW,
  ramp,
  SLOW_SETUP_MS,
  type Span,
  WINDOW_MS,
} from "./grammar.ts";
import { type Answer, Target } from "./target.ts";

export interface Ran {
  readonly combination: Combination;
  readonly form: Form;
  readonly target: Target;
  readonly run: InProcessRun;
  readonly summary: RunSummary;
  /** How often the last step, or the body before it, threw, by workflow. */
  readonly threw: ReadonlyMap<string, number>;
  /** Which rows the iterations had that came to their end. */
  readonly rows: readonly UsedRow[];
}

interface UsedRow {
  readonly workflow: string;
  readonly user: number;
  readonly number: number;
}

/** Environment of a combination's workflows. */
interface Surroundings {
  readonly url: string;
  readonly target: Target;
  readonly threw: Map<string, number>;
  readonly rows: UsedRow[];
}

// biome-ignore lint/suspicious/noExplicitAny: the chain of a generated workflow has no static names.
type Context = StepContext<any, any, any, any>;

export const FAILURES_THRESHOLD = `errors.rate over ${WINDOW_MS}ms < 5%`;

/** The step of a flow whose code throws. */
export const THROWS = "throws";

/** Every linear case can be written as layers of steps and as the body of a flow. */
export const FORMS = ["layers", "flow"] as const;
type Form = (typeof FORMS)[number];

export async function runCombination(combination: Combination, form: Form): Promise<Ran> {
  const parts = new Map(combination.workflows.map((part) => [part.name, part]));
  const target = new Target(({ step, workflow }, atMs) => answer(parts.get(workflow), step, atMs));
  const url = await target.listen();
  const around: Surroundings = { url, target, threw: new Map(), rows: [] };
  try {
    const flows = combination.workflows.map((part, at) => {
      const written = (form === "flow" ? buildFlow : build)(part, around);
      if (at === 1 && combination.order === "chained") written.definition.dependsOn.push("w0");
      return written;
    });
    const run = await InProcessRun.start(flows, { cores: combination.cores });
    const { stopAfterMs } = combination;
    const stop = stopAfterMs === null ? undefined : setTimeout(() => run.stop(), stopAfterMs);
    await run.done;
    clearTimeout(stop);
    await target.settle();
    const { rows, threw } = around;
    return { combination, form, target, run, summary: run.summary(), threw, rows };
  } finally {
    target.close();
  }
}

const ANSWER_MS = 4;

/** Failures and stalls of the grammar, by the server's own clock. */
function answer(part: Part | undefined, step: string, atMs: number): Answer {
  const isAside = step === "setup" || step === "leave";
  const failing = part !== undefined && within(part.failures, atMs) && !isAside;
  const { hangsFromMs } = part ?? { hangsFromMs: null };
  const answersNothing = hangsFromMs !== null && atMs >= hangsFromMs && !isAside;
  if (step === "hang" || answersNothing)
    return { status: 200, text: "", afterMs: Number.POSITIVE_INFINITY };
  const held = part !== undefined && within(part.stall, atMs) ? (part.stall?.toMs ?? 0) - atMs : 0;
  return { status: failing ? 500 : 200, text: "answered", afterMs: ANSWER_MS + held };
}

function within(span: Span | null, atMs: number): boolean {
  return span !== null && atMs >= span.fromMs && atMs < span.toMs;
}

export function optionsOf(part: Part): WorkflowOptions {
  const { load } = part;
  const thresholds = [
    { threshold: FAILURES_THRESHOLD, abortOnFail: part.abortOnFail },
    "arrivals.missed.rate <= 100%",
  ].slice(0, load.kind === "open" ? 2 : 1);
  const { startAfterMs: startAfter, warmupMs: warmup } = part;
  const hangs = part.hangs || part.hangsFromMs !== null;
  const stop = hangs ? { gracefulStop: HANGING_STOP_MS } : {};
  const common = { startAfter, warmup, thresholds, ...PATIENT, ...stop } as const;
  switch (load.kind) {
    case "closed": {
      const { durationMs: duration, peak, vus } = load;
      if (peak === null) return { ...common, vus, duration, pacing: PACING_MS };
      const stages = ramp(vus, peak, duration).map(([ms, to]) => ({ duration: ms, vus: to }));
      return { ...common, stages, startVus: vus, pacing: PACING_MS };
    }
    case "open": {
      const { durationMs: duration, maxVus, peak, rate } = load;
      if (peak === null) return { ...common, rate, maxVus, duration };
      const rateStages = ramp(rate, peak, duration).map(([ms, to]) => ({ duration: ms, rate: to }));
      return { ...common, rateStages, startRate: rate, maxVus };
    }
    case "shared":
      return { ...common, vus: load.vus, iterations: load.iterations, pacing: PACING_MS };
    case "perUser":
      return { ...common, vus: load.vus, iterationsPerVu: load.iterations, pacing: PACING_MS };
  }
}

interface Row {
  readonly number: number;
}

function feedOf({ rows }: Part): Feed<Row> | null {
  if (rows === "none") return null;
  const length = rows === "few" ? ROWS_FEW : ROWS_ENOUGH;
  const numbers = Array.from({ length }, (_, number) => ({ number }));
  return feed.rows(numbers, rows === "user" ? { per: "user" } : { order: "once" });
}

/** Called once per iteration that came so far. */
function noteRow(part: Part, around: Surroundings, data: unknown, user: number): true {
  const { row } = data as { readonly row?: Row };
  if (row !== undefined) around.rows.push({ workflow: part.name, user, number: row.number });
  return true;
}

/** Names of the calls that begin an iteration beside s0. */
function besideFirst({ parallel }: Part): string[] {
  return Array.from({ length: parallel - 1 }, (_, at) => `p${at + 1}`);
}

/** The same as `build`, as a function. */
function buildFlow(part: Part, around: Surroundings) {
  const { first, layers, name, pauseFirstMs } = part;
  const { target, threw, url } = around;
  const get = (step: string) => http.get(`${url}/${name}/${step}`);
  const calls = Array.from({ length: layers }, (_, at) => get(`s${at}`));
  const beside = besideFirst(part).map((step) => [step, get(step)] as const);
  const userSetup = async ({ step }: UserSetupContext): Promise<void> => {
    target.touch(name);
    await step("setup", http.get(`${url}/${name}/setup`));
    if (part.userSetup === "slow")
      await new Promise((resolve) => setTimeout(resolve, SLOW_SETUP_MS));
  };
  const userTeardown = async ({ step }: UserSetupContext): Promise<void> => {
    await step("leave", get("leave"));
  };
  const rows = feedOf(part);
  const own = {
    ...(rows === null ? {} : { data: { row: rows } }),
    ...(part.userSetup === "none" ? {} : { userSetup }),
    ...(part.userTeardown ? { userTeardown } : {}),
  };
  return flow(name, { ...optionsOf(part), ...own }, async ({ check, data, pause, step, user }) => {
    if (pauseFirstMs > 0 || first === "action") target.touch(name);
    if (pauseFirstMs > 0) await pause(pauseFirstMs);
    for (const [at, call] of calls.entries()) {
      const throws = at === layers - 1 ? part.throwEvery : 0;
      if (throws > 0 && user.iteration % throws === throws - 1) {
        // Refused at the end of the plan: then the body does not come to throw either.
        await step(THROWS, () => {
          throw new Error("as planned");
        });
        threw.set(name, (threw.get(name) ?? 0) + 1);
        throw new Error("as planned");
      }
      const others = at === 0 ? beside : [];
      await Promise.all([step(`s${at}`, call), ...others.map((other) => step(...other))]);
    }
    check("last", () => noteRow(part, around, data, user.id));
    if (part.hangs && user.iteration === 1) await step("hang", get("hang"));
  });
}

function build(part: Part, around: Surroundings) {
  const { first, layers, name, pauseFirstMs } = part;
  const { target, threw, url } = around;
  let flow = workflow(name, optionsOf(part));
  if (part.userSetup !== "none")
    flow = flow.userSetup(async ({ http }) => {
      target.touch(name);
      await http.get(`${url}/${name}/setup`);
      if (part.userSetup === "slow")
        await new Promise((resolve) => setTimeout(resolve, SLOW_SETUP_MS));
    });
  if (part.userTeardown)
    flow = flow.userTeardown(async ({ http }) => void (await http.get(`${url}/${name}/leave`)));
  const pausing = pauseFirstMs > 0 || first === "action";
  // Names are made here, so the typed chain cannot follow them.
  let chain = flow as unknown as Chain;
  const rows = feedOf(part);
  if (rows !== null) chain = chain.data("row", rows);
  if (pausing)
    chain = chain.action("before", async ({ sleep }) => {
      target.touch(name);
      if (pauseFirstMs > 0) await sleep(pauseFirstMs);
    });
  const beside = besideFirst(part);
  for (let at = 0; at < layers; at++) {
    const step = `s${at}`;
    const start = pausing ? ["before"] : [];
    const after = { after: at === 0 ? start : at === 1 ? ["s0", ...beside] : [`s${at - 1}`] };
    const address = `${url}/${name}/${step}`;
    const throws = at === layers - 1 ? part.throwEvery : 0;
    chain =
      (at === 0 ? first !== "function" : at % 2 === 0) && throws === 0
        ? chain.step(step, after, http.get(address))
        : chain.step(step, after, ({ http, user }: Context) => {
            target.touch(name);
            if (throws > 0 && user.iteration % throws === throws - 1) {
              threw.set(name, (threw.get(name) ?? 0) + 1);
              throw new Error("as planned");
            }
            return http.get(address);
          });
    if (at > 0) continue;
    for (const other of beside)
      chain = chain.step(other, after, http.get(`${url}/${name}/${other}`));
  }
  if (part.hangs)
    chain = chain.step("hang", { after: [`s${layers - 1}`] }, ({ http, user }: Context) =>
      user.iteration === 1 ? http.get(`${url}/${name}/hang`) : measure(() => 1),
    );
  return chain.check("last", { after: [`s${layers - 1}`] }, ({ data, user }) =>
    noteRow(part, around, data, user.id),
  );
}

interface Chain {
  readonly definition: ReturnType<typeof workflow>["definition"];
  dependsOn(name: string): Chain;
  action(name: string, run: (context: Context) => unknown): Chain;
  step(name: string, options: object, run: unknown): Chain;
  check(name: string, options: object, test: (context: Context) => boolean): Chain;
  data(name: string, rows: Feed<Row>): Chain;
}
