/** Builds the workflows of a combination, runs them on real cores, and gives what there is to compare. */

import type { RunSummary } from "../../src/core/run/results/model.ts";
import { http } from "../../src/protocols/http1/index.ts";
import { InProcessRun } from "../../src/runner/testing/in-process-run.ts";
import type { StepContext } from "../../src/workflow/context.ts";
import { flow } from "../../src/workflow/flow.ts";
import type { UserSetupContext } from "../../src/workflow/flow-context.ts";
import type { WorkflowOptions } from "../../src/workflow/options.ts";
import { workflow } from "../../src/workflow/workflow.ts";
import {
  type Combination,
  PACING_MS,
  type Part,
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
}

// biome-ignore lint/suspicious/noExplicitAny: the chain of a generated workflow has no static names.
type Context = StepContext<any, any, any, any>;

export const FAILURES_THRESHOLD = `errors.rate over ${WINDOW_MS}ms < 5%`;

/** Every linear case can be written as layers of steps and as the body of a flow. */
export const FORMS = ["layers", "flow"] as const;
type Form = (typeof FORMS)[number];

export async function runCombination(combination: Combination, form: Form): Promise<Ran> {
  const parts = new Map(combination.workflows.map((part) => [part.name, part]));
  const target = new Target(({ step, workflow }, atMs) => answer(parts.get(workflow), step, atMs));
  const url = await target.listen();
  const threw = new Map<string, number>();
  try {
    const flows = combination.workflows.map((part, at) => {
      const written = (form === "flow" ? buildFlow : build)(part, url, target, threw);
      if (at === 1 && combination.order === "chained") written.definition.dependsOn.push("w0");
      return written;
    });
    const run = await InProcessRun.start(flows, { cores: combination.cores });
    const { stopAfterMs } = combination;
    const stop = stopAfterMs === null ? undefined : setTimeout(() => run.stop(), stopAfterMs);
    await run.done;
    clearTimeout(stop);
    return { combination, form, target, run, summary: run.summary(), threw };
  } finally {
    target.close();
  }
}

const ANSWER_MS = 4;

/** Failures and stalls of the grammar, by the server's own clock. */
function answer(part: Part | undefined, step: string, atMs: number): Answer {
  const failing = part !== undefined && within(part.failures, atMs) && step !== "setup";
  const held = part !== undefined && within(part.stall, atMs) ? (part.stall?.toMs ?? 0) - atMs : 0;
  return { status: failing ? 500 : 200, text: "answered", afterMs: ANSWER_MS + held };
}

function within(span: Span | null, atMs: number): boolean {
  return span !== null && atMs >= span.fromMs && atMs < span.toMs;
}

function options(part: Part): WorkflowOptions {
  const { load } = part;
  const thresholds = [
    { threshold: FAILURES_THRESHOLD, abortOnFail: part.abortOnFail },
    "arrivals.missed.rate <= 100%",
  ].slice(0, load.kind === "open" ? 2 : 1);
  const { startAfterMs: startAfter, warmupMs: warmup } = part;
  const common = { startAfter, warmup, gracefulStop: "5s", thresholds } as const;
  switch (load.kind) {
    case "closed":
      return { ...common, vus: load.vus, duration: load.durationMs, pacing: PACING_MS };
    case "open":
      return { ...common, rate: load.rate, maxVus: load.maxVus, duration: load.durationMs };
    case "shared":
      return { ...common, vus: load.vus, iterations: load.iterations, pacing: PACING_MS };
    case "perUser":
      return { ...common, vus: load.vus, iterationsPerVu: load.iterations, pacing: PACING_MS };
  }
}

/** The same as `build`, as a function. */
function buildFlow(part: Part, url: string, target: Target, threw: Map<string, number>) {
  const { first, layers, name, pauseFirstMs } = part;
  const calls = Array.from({ length: layers }, (_, at) => http.get(`${url}/${name}/s${at}`));
  const userSetup = async ({ step }: UserSetupContext): Promise<void> => {
    target.touch(name);
    await step("setup", http.get(`${url}/${name}/setup`));
    if (part.userSetup === "slow")
      await new Promise((resolve) => setTimeout(resolve, SLOW_SETUP_MS));
  };
  const own = part.userSetup === "none" ? {} : { userSetup };
  return flow(name, { ...options(part), ...own }, async ({ check, pause, step, user }) => {
    if (pauseFirstMs > 0 || first === "action") target.touch(name);
    if (pauseFirstMs > 0) await pause(pauseFirstMs);
    for (const [at, call] of calls.entries()) {
      const throws = at === layers - 1 ? part.throwEvery : 0;
      if (throws > 0 && user.iteration % throws === throws - 1) {
        threw.set(name, (threw.get(name) ?? 0) + 1);
        throw new Error("as planned");
      }
      await step(`s${at}`, call);
    }
    check("last", () => true);
  });
}

function build(part: Part, url: string, target: Target, threw: Map<string, number>) {
  const { first, layers, name, pauseFirstMs } = part;
  let flow = workflow(name, options(part));
  if (part.userSetup !== "none")
    flow = flow.userSetup(async ({ http }) => {
      target.touch(name);
      await http.get(`${url}/${name}/setup`);
      if (part.userSetup === "slow")
        await new Promise((resolve) => setTimeout(resolve, SLOW_SETUP_MS));
    });
  const pausing = pauseFirstMs > 0 || first === "action";
  // Names are made here, so the typed chain cannot follow them.
  let chain = flow as unknown as Chain;
  if (pausing)
    chain = chain.action("before", async ({ sleep }) => {
      target.touch(name);
      if (pauseFirstMs > 0) await sleep(pauseFirstMs);
    });
  for (let at = 0; at < layers; at++) {
    const step = `s${at}`;
    const before = at > 0 ? `s${at - 1}` : pausing ? "before" : null;
    const after = before === null ? {} : { after: [before] };
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
  }
  return chain.check("last", { after: [`s${layers - 1}`] }, () => true);
}

interface Chain {
  readonly definition: ReturnType<typeof workflow>["definition"];
  dependsOn(name: string): Chain;
  action(name: string, run: (context: Context) => unknown): Chain;
  step(name: string, options: object, run: unknown): Chain;
  check(name: string, options: object, test: () => boolean): Chain;
}
