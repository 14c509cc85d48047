/**
 * Where a job's replicas live, and what their acks prove. (VSR-28, VSR-29)
 *
 *     3 regions:  use1 ■   euw1 ■   apse ■      no region holds a quorum: every commit survives a region
 *     2 regions:  use1 ■■  euw1 ■               use1 alone is a quorum: a commit is GLOBAL only if euw1 acked
 *     1 region:   use1 ■■■                      REGIONAL at best
 *
 * An odd group over two regions always leaves a quorum in one of them. That is no reason to refuse: the
 * level is judged by who acked, not by how the group was meant.
 */

import { assert } from "../../base/assert.ts";
import type { NodeId } from "../../base/ids.ts";
import type { PlacementConfig } from "./config.ts";
import type { Durability } from "./durability.ts";

export interface Site {
  readonly node: NodeId;
  readonly region: string;
}

export interface Placement {
  /** In the order of the candidates: the first is the owner of the first view. */
  readonly replicas: readonly Site[];
  readonly quorum: number;
  /** True when every possible quorum spans two regions, so that each commit is GLOBAL. */
  readonly everyCommitIsGlobal: boolean;
}

type PlacementResult =
  | { readonly ok: true; readonly placement: Placement }
  | {
      readonly ok: false;
      readonly refusal: { readonly code: "TOO_FEW_GATES"; readonly available: number };
    };

/** The smallest group that survives a loss. */
const REPLICATED_MIN = 3;

export function quorumOf(replicas: number): number {
  assert(replicas >= 1, "a group has a member");
  return Math.floor(replicas / 2) + 1;
}

/** Chooses from candidates in ring order; with too few of them, the largest odd group there is. */
export function placeReplicas(
  candidates: readonly Site[],
  { fewGates, replicas }: PlacementConfig,
): PlacementResult {
  assert(replicas % 2 === 1, "a group has an odd number of replicas");
  const available = candidates.length;
  const tooFew = available < Math.min(REPLICATED_MIN, replicas);
  if (available === 0 || (tooFew && fewGates === "refuse")) {
    return { ok: false, refusal: { code: "TOO_FEW_GATES", available } };
  }
  const count = tooFew ? 1 : Math.min(replicas, available - 1 + (available % 2));
  const chosen = spread(candidates, count);
  const quorum = quorumOf(count);
  const fullest = Math.max(...countByRegion(chosen).values());
  return {
    ok: true,
    placement: { replicas: chosen, quorum, everyCommitIsGlobal: fullest < quorum },
  };
}

/** Each next replica goes to a region with the fewest so far, the earliest candidate first. */
function spread(candidates: readonly Site[], count: number): readonly Site[] {
  const chosen = new Set<Site>();
  while (chosen.size < count) {
    const taken = countByRegion([...chosen]);
    let best: Site | null = null;
    for (const site of candidates) {
      if (chosen.has(site)) continue;
      if (best === null || (taken.get(site.region) ?? 0) < (taken.get(best.region) ?? 0)) {
        best = site;
      }
    }
    assert(best !== null, "there are as many candidates as replicas");
    chosen.add(best);
  }
  return candidates.filter((site) => chosen.has(site));
}

function countByRegion(sites: readonly Site[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { region } of sites) counts.set(region, (counts.get(region) ?? 0) + 1);
  return counts;
}

/**
 * Returns the durability proven by the members that durably store an entry. Without a quorum nothing is committed,
 * however far apart the copies are; a single copy is only as good as its disk.
 */
export function levelReached(acked: readonly Site[], groupSize: number): Durability {
  if (acked.length === 0) return "NONE";
  assert(acked.length <= groupSize, "only members ack");
  if (acked.length < quorumOf(groupSize) || acked.length === 1) return "LOCAL";
  const losesAll = (region: string): boolean => acked.every((site) => site.region === region);
  return acked.some(({ region }) => losesAll(region)) ? "REGIONAL" : "GLOBAL";
}
