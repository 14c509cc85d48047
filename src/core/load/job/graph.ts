/**
 * Layers of a graph of names: roots are layer 0, everything else comes one layer after its latest
 * predecessor (longest path, so a name never shares a layer with anything it waits for). The same
 * rule orders the steps of a workflow (DAG-4) and the workflows of a job (DEP-2).
 *
 * A graph that cannot be ordered is answered with a problem that names the names.
 */

import { didYouMean, nearestName } from "../../base/nearest.ts";

export interface GraphNode {
  readonly name: string;
  /** Dependencies. */
  readonly after: readonly string[];
}

type Layering = { readonly ok: true; readonly layers: string[][] } | GraphProblem;

export type GraphProblem =
  | {
      readonly ok: false;
      readonly problem: "duplicate";
      readonly node: string;
      readonly message: string;
    }
  | {
      readonly ok: false;
      readonly problem: "unknown";
      readonly node: string;
      /** The unknown name, and the one that was probably meant. */
      readonly name: string;
      readonly suggestion: string | null;
      readonly message: string;
    }
  | {
      readonly ok: false;
      readonly problem: "cycle";
      /** Each waits for the next; the first is repeated at the end. */
      readonly cycle: readonly string[];
      readonly message: string;
    };

/** Layers in order of declaration. `noun`: term for the nodes in messages. */
export function layersOf(nodes: readonly GraphNode[], noun = "step"): Layering {
  const byName = new Map<string, GraphNode>();
  for (const node of nodes) {
    if (byName.has(node.name)) return duplicate(node.name, noun);
    byName.set(node.name, node);
  }
  for (const node of nodes) {
    const name = node.after.find((before) => !byName.has(before));
    if (name !== undefined) return unknown(node.name, name, byName, noun);
  }
  const layerByName = depths(nodes);
  if (layerByName.size < nodes.length) return cycle(nodes, layerByName, noun);
  const layers: string[][] = [];
  for (const { name } of nodes) {
    const at = layerByName.get(name) ?? 0;
    while (layers.length <= at) layers.push([]);
    layers[at]?.push(name);
  }
  return { ok: true, layers };
}

/** Every direct or indirect dependent of `name`, in order of declaration. */
export function descendantsOf(name: string, nodes: readonly GraphNode[]): string[] {
  const found = new Set([name]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const node of nodes) {
      if (found.has(node.name) || !node.after.some((before) => found.has(before))) continue;
      found.add(node.name);
      grown = true;
    }
  }
  return nodes.map((node) => node.name).filter((other) => other !== name && found.has(other));
}

/** Removes nodes without dependencies repeatedly; nodes on or behind a cycle stay. */
function depths(nodes: readonly GraphNode[]): Map<string, number> {
  const waiting = new Map(nodes.map((node) => [node.name, new Set(node.after).size]));
  const followers = new Map<string, string[]>(nodes.map((node) => [node.name, []]));
  for (const node of nodes) {
    for (const before of new Set(node.after)) followers.get(before)?.push(node.name);
  }
  const depth = new Map<string, number>();
  const ready = nodes.filter((node) => node.after.length === 0).map((node) => node.name);
  for (const root of ready) depth.set(root, 0);
  const least = new Map<string, number>();
  for (let name = ready.shift(); name !== undefined; name = ready.shift()) {
    const next = (depth.get(name) ?? 0) + 1;
    for (const follower of followers.get(name) ?? []) {
      least.set(follower, Math.max(least.get(follower) ?? 0, next));
      const left = (waiting.get(follower) ?? 0) - 1;
      waiting.set(follower, left);
      if (left > 0) continue;
      depth.set(follower, least.get(follower) ?? next);
      ready.push(follower);
    }
  }
  return depth;
}

function duplicate(node: string, noun: string): GraphProblem {
  const message = `two ${noun}s are called "${node}"; names must differ`;
  return { ok: false, problem: "duplicate", node, message };
}

function unknown(
  node: string,
  name: string,
  known: ReadonlyMap<string, GraphNode>,
  noun: string,
): GraphProblem {
  const others = [...known.keys()].filter((other) => other !== node);
  const hint =
    didYouMean(name, others) ||
    (others.length === 0 ? "" : `; there are: ${others.slice(0, 10).join(", ")}`);
  return {
    ok: false,
    problem: "unknown",
    node,
    name,
    suggestion: nearestName(name, others),
    message: `${noun} "${node}" waits for "${name}", but no ${noun} has that name${hint}`,
  };
}

function cycle(
  nodes: readonly GraphNode[],
  ordered: ReadonlyMap<string, number>,
  noun: string,
): GraphProblem {
  const stuck = new Map(
    nodes.filter(({ name }) => !ordered.has(name)).map((node) => [node.name, node]),
  );
  // Every stuck node waits for another stuck one: the walk must return to a visited name.
  const path: string[] = [];
  let at = [...stuck.keys()][0];
  while (at !== undefined && !path.includes(at)) {
    path.push(at);
    at = stuck.get(at)?.after.find((before) => stuck.has(before));
  }
  const round = at === undefined ? path : [...path.slice(path.indexOf(at)), at];
  const message = `${noun}s wait for each other in a circle: ${round.join(" -> ")}`;
  return { ok: false, problem: "cycle", cycle: round, message };
}
