/**
 * Which node may run a task. (TQ-36) Tasks with the same executor and constraints are alike to every node, so they
 * share a lane, and a lane is matched once instead of every task.
 */

import { DEFAULT_QUEUE } from "./gates.ts";

export interface Placement {
  readonly requires_executors?: readonly string[] | undefined;
  readonly requires_capabilities?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly allowed_nodes?: readonly string[] | undefined;
  readonly forbidden_nodes?: readonly string[] | undefined;
  /** At most this many tasks of the same executor and constraints at once on one node. */
  readonly max_parallel_per_node?: number | undefined;
}

export interface NodeProfile {
  readonly nodeId: string;
  readonly executors: readonly string[];
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** Returns why this node may never run the task, or undefined when it may. */
export function refusal(
  executor: string,
  placement: Placement | null,
  node: NodeProfile,
): string | undefined {
  const missing = [executor, ...(placement?.requires_executors ?? [])].find(
    (name) => !node.executors.includes(name),
  );
  if (missing !== undefined) return `has no executor "${missing}"`;
  if (placement === null) return undefined;
  const { allowed_nodes: allowed, forbidden_nodes: forbidden } = placement;
  if (allowed !== undefined && !allowed.includes(node.nodeId)) return "is not among allowed_nodes";
  if (forbidden?.includes(node.nodeId)) return "is among forbidden_nodes";
  for (const [name, wanted] of Object.entries(placement.requires_capabilities ?? {})) {
    const offered = Object.hasOwn(node.capabilities, name) ? node.capabilities[name] : undefined;
    if (!offers(offered, wanted)) {
      return `lacks capability ${name}=${wanted} (it has ${offered === undefined ? "none" : String(offered)})`;
    }
  }
  return undefined;
}

/** A node offers one value or a list of them; 16 on the command line equals the 16 of a task. */
function offers(offered: unknown, wanted: string | number | boolean): boolean {
  const values: readonly unknown[] = Array.isArray(offered) ? offered : [offered];
  return values.some((value) => value !== undefined && String(value) === String(wanted));
}

/** Explains to a person why a queued task waits, given the present nodes. */
export function explainPlacement(
  executor: string,
  placement: Placement | null,
  nodes: readonly NodeProfile[],
): string {
  if (nodes.length === 0) return "no node is there to run it";
  const refusals = nodes.map((node) => ({ node, why: refusal(executor, placement, node) }));
  const able = refusals.filter(({ why }) => why === undefined).map(({ node }) => node.nodeId);
  if (able.length > 0) {
    return `waits for a free slot on ${able.slice(0, 5).join(", ")}${able.length > 5 ? " …" : ""}`;
  }
  if (nodes.every(({ executors }) => !executors.includes(executor)))
    return `no node has the executor "${executor}"`;
  const reasons = refusals.slice(0, 5).map(({ node, why }) => `${node.nodeId} ${why}`);
  return `no known node can run it: ${reasons.join("; ")}${refusals.length > 5 ? "; …" : ""}`;
}

/** Name of a task's lane: equal for tasks of one queue that every node treats alike. */
export function laneOf(
  executor: string,
  placement: Placement | null,
  queue: string = DEFAULT_QUEUE,
): string {
  const lane = placement === null ? executor : `${executor} ${canonicalJson(placement)}`;
  return queue === DEFAULT_QUEUE ? lane : `queue=${queue}\n${lane}`;
}

/** JSON with sorted keys: equal values give equal texts. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(",")}}`;
}
