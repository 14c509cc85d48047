/** How many connections a job opens at once: to one target, which costs local ports, and from one core. */

import { planVusMax } from "../plan/load.ts";
import { layersOf } from "./graph.ts";
import type { WorkflowManifest } from "./manifest.ts";
import { sideBySide } from "./partition.ts";

interface Needed {
  /** "127.0.0.1:8080"; null when only the code of a step knows it. */
  readonly to: string | null;
  readonly connections: number;
}

/** The target with the most connections, from all workflows that run at the same time; at most `pool` cores each. */
export function mostToOneTarget(manifests: readonly WorkflowManifest[], pool: number): Needed {
  const needed = layers(manifests).flatMap((layer) => {
    const known = new Map<string, number>();
    const unknown: Needed[] = [];
    for (const { load, targets } of layer) {
      for (const { perCore, perUser, to } of targets) {
        const connections = perUser * planVusMax(load) + perCore * pool;
        if (to === null) unknown.push({ to, connections });
        else known.set(to, (known.get(to) ?? 0) + connections);
      }
    }
    return [...unknown, ...[...known].map(([to, connections]) => ({ to, connections }))];
  });
  return needed.reduce((most, one) => (one.connections > most.connections ? one : most), {
    to: null,
    connections: 0,
  });
}

/** Maximum connections of one executor core: a workflow's part, which is all of it on one core. */
export function mostOnOneCore(manifests: readonly WorkflowManifest[], pool: number): number {
  const parts = layers(manifests).flatMap((layer) => {
    const threads = new Map(
      sideBySide(pool, layer)
        .flat()
        .map((one) => [one.name, one.threads]),
    );
    return layer.map(({ connectionsMax, load, name }) => {
      const cores = Math.min(Math.max(1, threads.get(name) ?? 1), Math.max(1, planVusMax(load)));
      return Math.ceil(connectionsMax / cores);
    });
  });
  return Math.max(0, ...parts);
}

function layers(manifests: readonly WorkflowManifest[]): WorkflowManifest[][] {
  const order = layersOf(
    manifests.map(({ name, dependsOn }) => ({ name, after: dependsOn })),
    "workflow",
  );
  if (!order.ok) return [];
  return order.layers.map((names) => manifests.filter(({ name }) => names.includes(name)));
}
