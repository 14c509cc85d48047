/** Which dimensions a draw of the grammars has, by name: for counting that none is left out. */

import type { Edge } from "./edge-grammar.ts";
import type { Combination, Part } from "./grammar.ts";
import type { Deed, Journey } from "./journey-grammar.ts";

/** Every one of these must occur among many draws. */
export const DIMENSIONS = [
  ...["closed", "closed ramp", "closed throttled", "open", "open ramp", "open random"],
  ...["shared iterations", "iterations per user"],
  ...["layers", "flow", "first prepared", "first function", "first action"],
  ...[
    "userSetup quick",
    "userSetup slow",
    "userTeardown",
    "cut off",
    "pause first",
    "parallel first calls",
    "warm-up",
  ],
  ...["1 layer", "2 layers", "3 layers", "row per user", "row once", "rows run out"],
  ...["window: fails in warm-up", "window: fails first", "window: fails in the middle"],
  ...["window: fails last", "stall", "abort on fail", "failed required call", "exception"],
  ...["end by choice", "floating call", "group", "overlapping groups", "poll met", "poll not met"],
  ...["mix", "several workflows", "chained workflows", "startAfter", "early end", "two cores"],
  ...["target hangs for good", "target never answers", "retried after the end"],
  ...["four rows", "four rows at random", "four rows per user", "rows come late"],
  ...["metrics of a flow", "metrics of a mix", "generator stops", "core lost", "search"],
  ...["many names", "many names on two cores", "many names of calls"],
] as const;
type Dimension = (typeof DIMENSIONS)[number];

/** The names that hold. */
function those(holds: Partial<Record<Dimension, boolean>>): Dimension[] {
  return DIMENSIONS.filter((name) => holds[name] === true);
}

export function dimensionsOf(chosen: Combination): ReadonlySet<Dimension> {
  const { cores, order, stopAfterMs, workflows } = chosen;
  return new Set([
    ...workflows.flatMap(ofPart),
    ...those({
      layers: true,
      flow: true,
      "several workflows": order !== "alone",
      "chained workflows": order === "chained",
      "early end": stopAfterMs !== null,
      "two cores": cores === 2,
    }),
  ]);
}

function ofPart({ failures, load, warmupMs, ...part }: Part): Dimension[] {
  const failsFrom = failures === null ? Number.NaN : failures.fromMs - warmupMs;
  return [
    ...ofLoad(load),
    ...those({
      [`first ${part.first}`]: true,
      [`${part.layers} ${part.layers === 1 ? "layer" : "layers"}`]: true,
      [`userSetup ${part.userSetup}`]: true,
      ...ofRows(part.rows),
      userTeardown: part.userTeardown,
      "cut off": part.hangs,
      "target hangs for good": part.hangsFromMs !== null,
      "pause first": part.pauseFirstMs > 0,
      "parallel first calls": part.parallel > 1,
      "warm-up": warmupMs > 0,
      "window: fails in warm-up": failsFrom < 0,
      "window: fails first": failsFrom === 0,
      "window: fails in the middle": failsFrom === 500,
      "window: fails last": failsFrom > 500,
      stall: part.stall !== null,
      exception: part.throwEvery > 0,
      "abort on fail": part.abortOnFail,
      startAfter: part.startAfterMs > 0,
    }),
  ];
}

function ofRows(rows: Part["rows"]): Partial<Record<Dimension, boolean>> {
  return {
    "row per user": rows === "user",
    "row once": rows === "once",
    "rows run out": rows === "few",
  };
}

function ofLoad(load: Part["load"] | Journey["loads"][number]): Dimension[] {
  const ramp = "peak" in load && load.peak !== null;
  const even = !("poisson" in load && load.poisson);
  return those({
    closed: load.kind === "closed" && !ramp,
    "closed ramp": load.kind === "closed" && ramp,
    "closed throttled": "maxRate" in load && load.maxRate !== null,
    open: load.kind === "open" && !ramp && even,
    "open ramp": load.kind === "open" && ramp,
    "open random": !even,
    "shared iterations": load.kind === "shared",
    "iterations per user": load.kind === "perUser",
  });
}

export function dimensionsOfEdge(chosen: Edge): ReadonlySet<Dimension> {
  const { cores, load, mixed, names, rows, stops } = chosen;
  const many = names.count > 100;
  return new Set(
    those({
      "target hangs for good": chosen.hangsFromMs !== null,
      "target never answers": chosen.hangsFromMs === 0,
      "four rows": rows === "four",
      "four rows at random": rows === "four random",
      "four rows per user": rows === "four per user",
      "row once": rows === "once",
      "rows come late": rows === "once" && chosen.leaseMs > 0,
      "metrics of a flow": cores === 1 && !mixed && load.kind !== "search",
      "metrics of a mix": cores === 1 && mixed,
      "generator stops": Object.keys(stops).length > 0,
      "core lost": chosen.losesAtMs !== null,
      search: load.kind === "search",
      mix: mixed,
      "many names": many && names.kind === "named",
      "many names of calls": many && names.kind === "unnamed",
      "many names on two cores": many && cores === 2,
    }),
  );
}

export function dimensionsOfJourney(chosen: Journey): ReadonlySet<Dimension> {
  const { flows, loads } = chosen;
  const deeds = flows.flatMap((one) => one.deeds);
  return new Set([
    ...loads.flatMap(ofLoad),
    ...flows.flatMap(({ rows }) => those(ofRows(rows))),
    ...deeds.flatMap((deed) => ofDeed(deed, chosen.failEvery > 0)),
    ...those({
      flow: true,
      "userSetup quick": flows.some(({ userSetup }) => userSetup),
      "pause first": flows.some((one) => one.deeds[0]?.kind === "pause"),
      "warm-up": chosen.warmupMs > 0,
      "abort on fail": chosen.abortOnFail,
      mix: chosen.mixed,
      "several workflows": !chosen.mixed && flows.length > 1,
      startAfter: !chosen.mixed && flows.length > 1 && chosen.startAfterMs > 0,
      "early end": chosen.stopAfterMs !== null,
      "two cores": chosen.cores === 2,
    }),
  ]);
}

function ofDeed(deed: Deed, failing: boolean): Dimension[] {
  const inside = deed.kind === "group" ? deed.deeds : deed.kind === "together" ? deed.groups : [];
  return [
    ...inside.flatMap((one) => ofDeed(one, failing)),
    ...those({
      "failed required call": deed.kind === "call" && deed.required && failing,
      "parallel first calls": deed.kind === "parallel",
      "floating call": deed.kind === "floating",
      group: deed.kind === "group",
      "overlapping groups": deed.kind === "together",
      "poll met": deed.kind === "poll" && deed.met,
      "poll not met": deed.kind === "poll" && !deed.met,
      exception: deed.kind === "throw",
      "end by choice": deed.kind === "end",
      "retried after the end": deed.kind === "stubborn",
    }),
  ];
}
