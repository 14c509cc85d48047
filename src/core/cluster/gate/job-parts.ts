/**
 * Part of a job for each datacenter: a share of the plan, or the whole plan in each. Thresholds are excluded: they
 * apply to the merged metrics, and are evaluated where these are merged.
 */

import type { WorkflowManifest } from "../../load/job/manifest.ts";
import { apportion, placesOf, splitPlan } from "../../load/plan/split.ts";
import type { Routing, Submission } from "../messages.ts";

export interface JobPart {
  readonly datacenter: string;
  /** Share of the plan. */
  readonly share: number;
  readonly submission: Submission;
}

/** `chosen`: datacenters with their free cores. Returns the parts sorted by name. */
export function partsOf(
  submission: Submission,
  routing: Routing,
  chosen: readonly { readonly dcId: string; readonly cores: number }[],
): readonly JobPart[] {
  const places = chosen.toSorted((a, b) => (a.dcId < b.dcId ? -1 : 1));
  const weights = places.map(({ cores, dcId }) => weightOf(routing, dcId) ?? Math.max(1, cores));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const cores = coresOf(submission.cores, routing, weights);
  return places.map(({ dcId }, index) => ({
    datacenter: dcId,
    share: routing.each ? 1 : (weights[index] ?? 0) / all,
    submission: {
      ...submission,
      ...(places.length === 1 ? {} : { thresholds: [], abortAfterMs: null }),
      held: true,
      cores: cores?.[index] ?? null,
      manifests:
        places.length === 1
          ? submission.manifests
          : submission.manifests.flatMap((one) => manifestOf(one, routing, weights, index)),
    },
  }));
}

/** Human-readable split: "of the plan: dc1 60 %, dc2 40 %". */
export function splitText(parts: readonly JobPart[]): string {
  const shares = parts.map(({ datacenter, share }) => `${datacenter} ${Math.round(share * 100)} %`);
  return `of the plan: ${shares.join(", ")}`;
}

/** Idempotency key of a part: every leader of the job finds the same part. */
export function keyOfPart(
  jobId: string,
  { attempt, dcId }: { readonly attempt: number; readonly dcId: string },
): string {
  return `${jobId}/${dcId}/${attempt}`;
}

/** Cores required in each datacenter, by weight; null for any number. */
export function coresOf(
  cores: number | null,
  { each }: Pick<Routing, "each">,
  weights: readonly number[],
): readonly number[] | null {
  if (cores === null) return null;
  if (each) return weights.map(() => cores);
  return apportion(Math.max(cores, weights.length), weights, 1);
}

/** Weight of a datacenter set by the submitter; null to use free cores. */
export function weightOf({ weights }: Routing, datacenter: string): number | null {
  return weights.find((one) => one.datacenter === datacenter)?.weight ?? null;
}

/** Reason why a job cannot run in this many datacenters; null if it can. (CCP-13) */
export function splitProblem(
  { manifests }: Submission,
  { each }: Routing,
  count: number,
): string | null {
  if (count === 1) return null;
  const search = manifests.find(({ load }) => load.kind === "search");
  if (search !== undefined)
    return `"${search.name}" looks for its breakpoint, which only one datacenter at a time can do`;
  if (each) return null;
  const layered = manifests.find(({ dependsOn }) => dependsOn.length > 0);
  if (layered !== undefined)
    return (
      `"${layered.name}" depends on others, whose values stay in their datacenter: ` +
      "run it in one datacenter, or as a whole in each (--each-datacenter)"
    );
  const most = Math.max(...manifests.map(({ load }) => placesOf(load, count)));
  return most < count
    ? `there is load for ${most} datacenters: fewer users or iterations than datacenters`
    : null;
}

function manifestOf(
  manifest: WorkflowManifest,
  { each }: Routing,
  weights: readonly number[],
  index: number,
): readonly WorkflowManifest[] {
  const joint = index === 0 ? "first" : "other";
  const unjudged = { ...manifest, thresholds: [], joint } as const;
  if (each) return [{ ...unjudged, parts: manifest.parts.map(withoutThresholds) }];
  const own = splitPlan(manifest.load, weights, index);
  if (own === null) return [];
  const parts = manifest.parts.map((flow) => ({
    ...withoutThresholds(flow),
    load: splitPlan(flow.load, weights, index)?.load ?? flow.load,
  }));
  return [{ ...unjudged, ...own, parts }];
}

function withoutThresholds(manifest: WorkflowManifest): WorkflowManifest {
  return { ...manifest, thresholds: [] };
}
