/** How many executor cores a job can use at once when they are processes that can be started on demand. */

import { assert } from "../../base/assert.ts";
import { planVusMax } from "../plan/load.ts";
import { layersOf } from "./graph.ts";
import type { WorkflowManifest } from "./manifest.ts";
import { type Batch, sideBySide } from "./partition.ts";

/** Enough for every layer to run in parallel; `pool`: cores of the machine. */
export function slotsOf(manifests: readonly WorkflowManifest[], pool: number): number {
  const order = layersOf(
    manifests.map(({ name, dependsOn }) => ({ name, after: dependsOn })),
    "workflow",
  );
  assert(order.ok, "manifests are validated before slots are counted");
  const layers = order.layers.map((names) => manifests.filter(({ name }) => names.includes(name)));
  return Math.max(...layers.map((layer) => slotsOfLayer(sideBySide(pool, layer), layer)));
}

/** Exclusive workflows use the slots of the others. */
export function slotsOfLayer(
  batches: readonly Batch[],
  manifests: readonly WorkflowManifest[],
): number {
  const usersOf = new Map(manifests.map(({ load, name }) => [name, Math.max(1, planVusMax(load))]));
  const alone = batches
    .flat()
    .filter(({ priority, threads }) => priority === "exclusive" && threads > 0);
  const others = batches.flat().filter((one) => !alone.includes(one));
  const slots = ({ name, threads }: Batch[number]): number =>
    threads === 0 ? 1 : Math.min(threads, usersOf.get(name) ?? 1);
  return Math.max(
    others.reduce((sum, one) => sum + slots(one), 0),
    ...alone.map(slots),
  );
}
