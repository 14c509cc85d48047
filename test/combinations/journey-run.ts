/**
 * Runs a journey on real cores. Its bodies keep a trail of what they themselves did, with stamps before
 * and after, and every call carries a key by which the server's log can be laid beside it.
 */

import type { RunSummary } from "../../src/core/load/results/model.ts";
import { http } from "../../src/protocols/http1/index.ts";
import { InProcessRun } from "../../src/runner/testing/in-process-run.ts";
import { CustomResult } from "../../src/workflow/custom-result.ts";
import { feed } from "../../src/workflow/feed.ts";
import { type Flow, flow } from "../../src/workflow/flow.ts";
import type { FlowContext, UserSetupContext } from "../../src/workflow/flow-context.ts";
import { mix } from "../../src/workflow/mix.ts";
import type { WorkflowOptions } from "../../src/workflow/options.ts";
import { workflow } from "../../src/workflow/workflow.ts";
import { PATIENT, ROWS_ENOUGH, ROWS_FEW, ramp } from "./grammar.ts";
import type { Deed, Journey, JourneyFlow } from "./journey-grammar.ts";
import { Target } from "./target.ts";

interface TrailCall {
  readonly step: string;
  readonly key: string;
  readonly groups: readonly TrailGroup[];
  readonly beforeAt: number;
  /** NaN while it is on the way. */
  afterAt: number;
  readonly required: boolean;
}

export interface TrailGroup {
  readonly path: string;
  readonly beforeAt: number;
  insideAt: number;
  bodyDoneAt: number;
  afterAt: number;
  pausedMs: number;
  pauses: number;
  /** How its body ended; a poll that was not met is a failure. */
  came: "returned" | "unmet" | "threw" | "cut off";
}

export interface Trail {
  readonly flow: string;
  readonly user: number;
  readonly core: number;
  readonly row: number | null;
  readonly beganAt: number;
  endedAt: number;
  outcome: "completed" | "ended" | "failed" | "interrupted";
  readonly calls: TrailCall[];
  readonly groups: TrailGroup[];
  /** Calls that were refused before the loop could turn. */
  refusedAtOnce: number;
  /** Whether the iteration reached its check. */
  arrived: boolean;
}

export interface JourneyRan {
  readonly journey: Journey;
  readonly target: Target;
  readonly summary: RunSummary;
  readonly notes: readonly string[];
  readonly trails: readonly Trail[];
  readonly startedAt: number;
}

/** Exact values, in milliseconds, that a separate workflow reports as measured. */
export const EXACT_MS: readonly number[] = Array.from(
  { length: 60 },
  (_, at) => Math.round(1_000 * 1.2 * 1.13 ** at) / 1_000,
);
export const EXACT = "exact";
const ANSWER_MS = 4;
const FLOATING_MS = 25;
const TRIES_MAX = 5;
const POLL_EVERY_MS = 6;
const POLL_WITHIN_MS = 30;
/** The call of `userSetup`. */
export const SETUP = "setup";

export async function runJourney(journey: Journey): Promise<JourneyRan> {
  const asked = new Map<string, number>();
  const target = new Target(({ key, step, workflow: name }) => {
    const count = (what: string): number => {
      asked.set(what, (asked.get(what) ?? 0) + 1);
      return asked.get(what) ?? 0;
    };
    const { failEvery } = journey;
    const failing = failEvery > 0 && count(`${name}/${step}`) % failEvery === 0;
    const [poll = 0, tries = 0, afterMs = ANSWER_MS] = key.split("-").map(Number);
    const ready = tries > 0 && count(`poll ${poll}`) >= tries;
    return { status: failing ? 500 : 200, text: ready ? "ready" : "not yet", afterMs };
  });
  const url = await target.listen();
  const trails: Trail[] = [];
  try {
    const written = journey.flows.map((one) => write(journey, one, { target, trails, url }));
    const exact = workflow(EXACT, { vus: 1, iterations: EXACT_MS.length })
      .step("value", ({ user }) => {
        const startedAt = performance.now();
        const endedAt = startedAt + (EXACT_MS[user.iteration] ?? 0);
        return new CustomResult(0, { startedAt, endedAt });
      })
      // Never succeeds, beside one that always does.
      .step("never", (): CustomResult => {
        throw new Error("as planned");
      });
    const load = journey.mixed ? mixOf(journey, written) : written;
    const startedAt = performance.now();
    const run = await InProcessRun.start([load, exact].flat(), { cores: journey.cores });
    const { stopAfterMs } = journey;
    const stop = stopAfterMs === null ? undefined : setTimeout(() => run.stop(), stopAfterMs);
    await run.done;
    clearTimeout(stop);
    const { notes } = run;
    return { journey, target, summary: run.summary(), notes, trails, startedAt };
  } finally {
    target.close();
  }
}

function mixOf(journey: Journey, flows: readonly Flow[]) {
  const parts = flows.map((one, at) => one.weight(journey.flows[at]?.weight ?? 1));
  return mix(parts, { name: "mix", ...options(journey, 0) });
}

const JOURNEY_WINDOW = "errors.rate over 300ms < 60%";

function options(journey: Journey, at: number): WorkflowOptions {
  const load = journey.loads[at];
  if (load === undefined) throw new Error("every flow outside a mix has a load");
  const thresholds = [
    { threshold: JOURNEY_WINDOW, abortOnFail: journey.abortOnFail },
    ...(load.kind === "open" ? ["arrivals.missed.rate <= 100%"] : []),
  ];
  const startAfter = at === 1 ? journey.startAfterMs : 0;
  const common = { startAfter, warmup: journey.warmupMs, thresholds, ...PATIENT } as const;
  switch (load.kind) {
    case "closed": {
      const throttle = load.maxRate === null ? {} : { maxRate: load.maxRate };
      const own = { ...common, ...throttle, pacing: 15 };
      const { durationMs: duration, peak, vus } = load;
      if (peak === null) return { ...own, vus, duration };
      const stages = ramp(vus, peak, duration).map(([ms, to]) => ({ duration: ms, vus: to }));
      return { ...own, stages, startVus: vus };
    }
    case "open": {
      const arrivals = load.poisson ? "poisson" : "even";
      const { durationMs: duration, maxVus, peak, rate } = load;
      if (peak === null) return { ...common, rate, arrivals, maxVus, duration };
      const rateStages = ramp(rate, peak, duration).map(([ms, to]) => ({ duration: ms, rate: to }));
      return { ...common, rateStages, startRate: rate, arrivals, maxVus };
    }
    case "shared":
      return { ...common, vus: load.vus, iterations: load.iterations };
    case "perUser":
      return { ...common, vus: load.vus, iterationsPerVu: load.iterations };
  }
}

interface Surroundings {
  readonly target: Target;
  readonly trails: Trail[];
  readonly url: string;
}

function write(journey: Journey, part: JourneyFlow, around: Surroundings): Flow {
  const { name, rows } = part;
  const at = journey.flows.indexOf(part);
  const own = journey.mixed ? {} : options(journey, at);
  const data = rows === "none" ? {} : { data: { row: rowsOf(rows) } };
  const userSetup = async ({ step }: UserSetupContext): Promise<void> => {
    around.target.touch(name);
    await step(SETUP, http.get(`${around.url}/${name}/${SETUP}/`));
  };
  const all = { ...own, ...data, ...(part.userSetup ? { userSetup } : {}) } as WorkflowOptions;
  return flow(name, all, async (context) => {
    around.target.touch(name);
    const { row } = context.data as { readonly row?: { readonly number: number } };
    const { core, id, iteration } = context.user;
    const trail: Trail = {
      flow: name,
      user: id,
      core,
      row: row?.number ?? null,
      beganAt: performance.now(),
      endedAt: Number.NaN,
      outcome: "completed",
      calls: [],
      groups: [],
      refusedAtOnce: 0,
      arrived: false,
    };
    around.trails.push(trail);
    const walker = new Walker(trail, around.url, iteration);
    try {
      await walker.walk(part.deeds, context, []);
      context.check("arrived", () => true);
      trail.arrived = true;
    } catch (error) {
      trail.outcome = walker.outcomeWanted ?? "interrupted";
      throw error;
    } finally {
      trail.endedAt = performance.now();
    }
  });
}

function rowsOf(rows: "user" | "once" | "few") {
  const length = rows === "few" ? ROWS_FEW : ROWS_ENOUGH;
  const numbers = Array.from({ length }, (_, number) => ({ number }));
  return feed.rows(numbers, rows === "user" ? { per: "user" } : { order: "once" });
}

const AS_PLANNED = "as planned";
let keys = 0;

/** Does what the grammar says, and writes down what it did. */
class Walker {
  readonly #trail: Trail;
  readonly #url: string;
  readonly #iteration: number;
  /** Outcome that the body intended when it did not return. */
  outcomeWanted: "ended" | "failed" | null = null;

  constructor(trail: Trail, url: string, iteration: number) {
    this.#trail = trail;
    this.#url = url;
    this.#iteration = iteration;
  }

  async walk(
    deeds: readonly Deed[],
    context: FlowContext,
    groups: readonly TrailGroup[],
  ): Promise<void> {
    for (const deed of deeds) await this.#do(deed, context, groups);
  }

  async #do(deed: Deed, context: FlowContext, groups: readonly TrailGroup[]): Promise<void> {
    switch (deed.kind) {
      case "call":
        return this.#call(deed, context, groups);
      case "parallel": {
        const calls = deed.names.map((name) => ({ kind: "call", name, required: false }) as const);
        await Promise.all(calls.map((call) => this.#call(call, context, groups)));
        return;
      }
      case "floating": {
        const call = this.#newCall(deed.name, groups, { afterMs: FLOATING_MS });
        const sent = this.#sent(call, context.step(deed.name, this.#get(call)));
        // Rejected at the end of the plan: the body may have no further call to notice it.
        sent.catch(() => {
          if (this.#trail.outcome === "completed") this.#trail.outcome = "interrupted";
        });
        return;
      }
      case "pause":
        await context.pause(deed.ms);
        for (const group of groups) {
          group.pausedMs += deed.ms;
          group.pauses++;
        }
        return;
      case "group":
        return this.#group(deed.name, groups, (opened) =>
          context.group(deed.name, (inner) => opened((own) => this.walk(deed.deeds, inner, own))),
        );
      case "together": {
        const side = deed.groups.map((one) => this.#do(one, context, groups));
        await Promise.all(side);
        return;
      }
      case "poll":
        return this.#poll(deed, context, groups);
      case "stubborn":
        return this.#stubborn(deed.name, context, groups);
      default: {
        if (this.#iteration % deed.every !== deed.every - 1) return;
        this.outcomeWanted = deed.kind === "throw" ? "failed" : "ended";
        if (deed.kind === "throw") throw new Error(AS_PLANNED);
        context.end(AS_PLANNED);
      }
    }
  }

  #newCall(
    step: string,
    groups: readonly TrailGroup[],
    { afterMs = ANSWER_MS, poll = 0, required = false, tries = 0 },
  ): TrailCall {
    const key = [poll, tries, afterMs, ++keys].join("-");
    const beforeAt = performance.now();
    const call = { step, key, groups, required, beforeAt, afterAt: Number.NaN };
    this.#trail.calls.push(call);
    return call;
  }

  #get(call: TrailCall) {
    return http.get(`${this.#url}/${this.#trail.flow}/${call.step}/${call.key}`);
  }

  async #sent<Result>(call: TrailCall, result: Promise<Result>): Promise<Result> {
    try {
      return await result;
    } finally {
      call.afterAt = performance.now();
    }
  }

  async #call(
    { name, required }: Extract<Deed, { kind: "call" }>,
    context: FlowContext,
    groups: readonly TrailGroup[],
  ): Promise<void> {
    const call = this.#newCall(name, groups, { required });
    const sent = context.step(name, this.#get(call), { required });
    try {
      await this.#sent(call, sent);
    } catch (error) {
      // The model asks the log whether it really failed; one that could not begin did not.
      const refused = (error as { readonly outcome?: unknown }).outcome === "interrupted";
      if (required && !refused) this.outcomeWanted = "ended";
      throw error;
    }
  }

  /** Tries again what is refused, a few times, and sees whether the loop turned meanwhile. */
  async #stubborn(
    name: string,
    context: FlowContext,
    groups: readonly TrailGroup[],
  ): Promise<void> {
    for (let tries = 1; ; tries++) {
      let turned = false;
      const turn = setImmediate(() => {
        turned = true;
      });
      const call = this.#newCall(name, groups, {});
      try {
        await this.#sent(call, context.step(name, this.#get(call), { required: false }));
        return;
      } catch (error) {
        if (!turned) this.#trail.refusedAtOnce++;
        if (tries === TRIES_MAX) throw error;
      } finally {
        clearImmediate(turn);
      }
    }
  }

  async #group(
    name: string,
    around: readonly TrailGroup[],
    open: (
      body: (walk: (own: readonly TrailGroup[]) => Promise<void>) => Promise<void>,
    ) => Promise<unknown>,
  ): Promise<void> {
    const outer = around.at(-1);
    const group: TrailGroup = {
      path: outer === undefined ? name : `${outer.path}/${name}`,
      beforeAt: performance.now(),
      insideAt: Number.NaN,
      bodyDoneAt: Number.NaN,
      afterAt: Number.NaN,
      pausedMs: 0,
      pauses: 0,
      came: "returned",
    };
    try {
      await open(async (walk) => {
        group.insideAt = performance.now();
        this.#trail.groups.push(group);
        try {
          await walk([...around, group]);
        } catch (error) {
          group.came = this.outcomeWanted === null ? "cut off" : "threw";
          throw error;
        } finally {
          group.bodyDoneAt = performance.now();
        }
      });
    } finally {
      group.afterAt = performance.now();
    }
  }

  async #poll(
    { met, name, tries }: Extract<Deed, { kind: "poll" }>,
    context: FlowContext,
    groups: readonly TrailGroup[],
  ): Promise<void> {
    const poll = ++keys;
    let opened: TrailGroup | undefined;
    let lastAt = Number.NaN;
    const calls: TrailCall[] = [];
    await this.#group(name, groups, (open) =>
      open(async (own) => {
        opened = own.at(-1);
        const answer = await context.poll(
          name,
          () => {
            const last = calls.at(-1);
            if (last !== undefined) last.afterAt = performance.now();
            const call = this.#newCall(name, own, { poll, tries: met ? tries : 0 });
            calls.push(call);
            return this.#get(call);
          },
          {
            until: (result) => {
              lastAt = performance.now();
              return result.text() === "ready";
            },
            every: POLL_EVERY_MS,
            ...(met ? {} : { within: POLL_WITHIN_MS }),
          },
        );
        const last = calls.at(-1);
        if (last !== undefined) last.afterAt = performance.now();
        if (answer === undefined && opened !== undefined) opened.came = "unmet";
      }),
    );
    // The group itself begins and ends inside `poll`.
    if (opened === undefined) return;
    opened.insideAt = calls[0]?.beforeAt ?? Number.NaN;
    opened.bodyDoneAt = lastAt;
  }
}
