/** Runs an edge on real cores; its bodies write down what they did, and the server keeps its log. */

import { ITERATIONS_LEASE } from "../../src/core/load/job/core-messages.ts";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import { http } from "../../src/protocols/http1/index.ts";
import { InProcessRun } from "../../src/runner/testing/in-process-run.ts";
import { feed } from "../../src/workflow/feed.ts";
import { type Flow, flow } from "../../src/workflow/flow.ts";
import type { FlowContext } from "../../src/workflow/flow-context.ts";
import { counter } from "../../src/workflow/metrics.ts";
import { mix } from "../../src/workflow/mix.ts";
import type { WorkflowOptions } from "../../src/workflow/options.ts";
import { EDGE_DURATION_MS, EDGE_STOP_MS, type Edge, FOUR } from "./edge-grammar.ts";
import { PATIENT, ROWS_ENOUGH } from "./grammar.ts";
import { Target } from "./target.ts";

export interface EdgeTrail {
  readonly flow: string;
  readonly core: number;
  readonly user: number;
  readonly row: number | null;
  /** Names of its calls. */
  readonly called: readonly string[];
  /** Added to the metric. */
  orders: number;
  completed: boolean;
  /** For how long it blocked the loop. */
  blockedMs: number;
}

export interface EdgeRan {
  readonly edge: Edge;
  readonly target: Target;
  readonly run: InProcessRun;
  readonly summary: RunSummary;
  readonly trails: readonly EdgeTrail[];
  /** Blocks of rows that the cores asked for. */
  readonly rowsAsked: number;
}

const ANSWER_MS = 4;
const PACING_MS = 25;
const SETTLE_MS = 100;
const HOLD_MS = 300;
const LATENCY_LIMIT_MS = 400;

const orders = counter("orders");
/** Metrics of one process have one sink: that of the last core in it. */
const hasMetrics = ({ cores, load }: Edge): boolean => cores === 1 && load.kind !== "search";

/** A threshold that names a flow. */
export const ordersThreshold = (flow: string): string => `${flow}.orders.count >= 0`;

export async function runEdge(edge: Edge): Promise<EdgeRan> {
  const target = new Target(queueOf(edge));
  const url = await target.listen();
  const trails: EdgeTrail[] = [];
  try {
    const names = edge.mixed ? ["f0", "f1"] : ["f0"];
    const flows = names.map((name) => write(edge, name, { target, trails, url }));
    const [first] = flows;
    const written = edge.mixed
      ? mix(
          flows.map((one) => one.weight(1)),
          { name: "mix", ...optionsOf(edge, names) },
        )
      : first;
    if (written === undefined) throw new Error("an edge has a flow");
    const { cores, leaseMs, losesAtMs } = edge;
    const run = await InProcessRun.start(written, { cores, leaseMs });
    const losing = losesAtMs === null ? undefined : setTimeout(() => run.lose(1), losesAtMs);
    await run.done;
    clearTimeout(losing);
    await target.settle();
    const rowsAsked = run.events.filter(
      ({ event }) => event.kind === "lease" && event.name !== ITERATIONS_LEASE,
    ).length;
    return { edge, target, run, summary: run.summary(), trails, rowsAsked };
  } finally {
    target.close();
  }
}

/** Answers soon, never, or one after the other where the rate is searched for. */
function queueOf({ hangsFromMs, load }: Edge): ConstructorParameters<typeof Target>[0] {
  let freeAt = 0;
  return (_, atMs) => {
    const hangs = hangsFromMs !== null && atMs >= hangsFromMs;
    if (load.kind !== "search")
      return { status: 200, text: "", afterMs: hangs ? Number.POSITIVE_INFINITY : ANSWER_MS };
    freeAt = Math.max(freeAt, atMs) + 1_000 / load.capacity;
    return { status: 200, text: "", afterMs: freeAt - atMs };
  };
}

function optionsOf(edge: Edge, flows: readonly string[]): WorkflowOptions {
  const { hangsFromMs, load } = edge;
  const stop = hangsFromMs === null ? {} : { gracefulStop: EDGE_STOP_MS };
  const thresholds = [
    ...(hasMetrics(edge) ? flows.map(ordersThreshold) : []),
    ...(load.kind === "search" ? [`latency.p95 < ${LATENCY_LIMIT_MS}ms`] : []),
  ];
  const metrics = hasMetrics(edge) ? { metrics: [orders] } : {};
  const common = { ...PATIENT, ...stop, ...metrics, thresholds } as const;
  const duration = EDGE_DURATION_MS;
  switch (load.kind) {
    case "open":
      return { ...common, rate: load.rate, maxVus: load.maxVus, duration } as WorkflowOptions;
    case "closed":
      return { ...common, vus: load.vus, pacing: PACING_MS, duration } as WorkflowOptions;
    case "shared":
      return { ...common, vus: load.vus, iterations: load.iterations } as WorkflowOptions;
    case "search": {
      const rate = { from: 20, to: 400 };
      const breakpoint = { rate, settle: SETTLE_MS, hold: HOLD_MS, precision: 0.25 };
      return { ...common, breakpoint, maxVus: 400 } as WorkflowOptions;
    }
  }
}

interface Surroundings {
  readonly target: Target;
  readonly trails: EdgeTrail[];
  readonly url: string;
}

function write(edge: Edge, name: string, { target, trails, url }: Surroundings): Flow {
  const own = edge.mixed ? {} : optionsOf(edge, [name]);
  const rows = rowsOf(edge);
  const all = { ...own, ...(rows === null ? {} : { data: { row: rows } }) } as WorkflowOptions;
  return flow(name, all, async ({ data, step, user }: FlowContext) => {
    target.touch(name);
    const serial = trails.length;
    const { row } = data as { readonly row?: { readonly number: number } };
    const called = stepsOf(edge, serial);
    const trail: EdgeTrail = {
      called,
      ...{ flow: name, core: user.core, user: user.id, row: row?.number ?? null },
      ...{ orders: 0, completed: false, blockedMs: 0 },
    };
    trails.push(trail);
    block(trail, edge.stops[serial] ?? 0);
    await Promise.all(
      called.map((one) => {
        const call = http.get(`${url}/${name}/${one}/`);
        return edge.names.kind === "named" ? step(one, call) : step(call);
      }),
    );
    if (hasMetrics(edge)) {
      trail.orders = 1 + (serial % 3);
      orders.add(trail.orders);
    }
    trail.completed = true;
  });
}

/** Cores come to the names in different orders. */
function stepsOf({ names: { calls, count } }: Edge, serial: number): string[] {
  return Array.from({ length: calls }, (_, at) => `n${(serial * 37 + at * 53) % count}`);
}

function block(trail: EdgeTrail, ms: number): void {
  const beganAt = performance.now();
  while (performance.now() - beganAt < ms);
  trail.blockedMs = ms === 0 ? 0 : performance.now() - beganAt;
}

function rowsOf({ rows }: Edge) {
  if (rows === "none") return null;
  const length = rows === "once" ? ROWS_ENOUGH : FOUR;
  const numbers = Array.from({ length }, (_, number) => ({ number }));
  if (rows === "four per user") return feed.rows(numbers, { per: "user" });
  const order = rows === "once" ? "once" : rows === "four" ? "sequential" : "random";
  return feed.rows(numbers, { order });
}
