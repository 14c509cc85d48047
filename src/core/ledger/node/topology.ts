/**
 * Placement of groups, from configuration alone: the same on every node, so that any node finds a job's group without
 * asking. A group's replicas are fixed when it is founded; this module chooses them and tells where to search for them
 * first. (VSR-26, IDEM-20, LEDG-2)
 */

import { assert } from "../../base/assert.ts";
import type { NodeId } from "../../base/ids.ts";
import { HashRing } from "../../membership/ring/hash-ring.ts";
import type { GroupId } from "../group/messages.ts";
import type { PlacementConfig } from "../job/config.ts";
import type { Durability } from "../job/durability.ts";
import { levelReached, placeReplicas, type Site } from "../job/placement.ts";
import { SHARD_COUNT } from "../keys/key.ts";

export const SHARD_PREFIX = "shard/";
/** Placements remembered; one costs a walk around the ring. */
const REMEMBERED_MAX = 4_096;

export function shardGroup(index: number): GroupId {
  return `${SHARD_PREFIX}${index}` as GroupId;
}

/** Null for a job's group. */
export function shardIndex(group: GroupId): number | null {
  if (!group.startsWith(SHARD_PREFIX)) return null;
  const index = Number(group.slice(SHARD_PREFIX.length));
  return Number.isInteger(index) && index >= 0 && index < SHARD_COUNT ? index : null;
}

export class Topology {
  readonly #ring: HashRing;
  readonly #sites = new Map<NodeId, Site>();
  readonly #placement: PlacementConfig;
  readonly #remembered = new Map<string, readonly NodeId[]>();

  constructor(sites: readonly Site[], placement: PlacementConfig) {
    assert(sites.length > 0, "a ledger has nodes");
    for (const site of sites) this.#sites.set(site.node, site);
    assert(this.#sites.size === sites.length, "a node is named once");
    this.#ring = new HashRing(this.#sites.keys());
    this.#placement = placement;
  }

  get nodes(): readonly NodeId[] {
    return [...this.#sites.keys()];
  }

  knows(node: NodeId): boolean {
    return this.#sites.has(node);
  }

  region(node: NodeId): string {
    return this.#sites.get(node)?.region ?? "";
  }

  /** The replicas a group is founded with; empty when there are too few nodes. */
  replicas(group: GroupId): readonly NodeId[] {
    const known = this.#remembered.get(group);
    if (known !== undefined) return known;
    const order = this.#ring.successors(group, this.#sites.size);
    const candidates = order.flatMap((id) => this.#sites.get(id as NodeId) ?? []);
    const placed = placeReplicas(candidates, this.#placement);
    const replicas = placed.ok ? placed.placement.replicas.map(({ node }) => node) : [];
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear();
    this.#remembered.set(group, replicas);
    return replicas;
  }

  /** Durability reached when these replicas of a group have stored an entry. (VSR-29) */
  level(holders: readonly NodeId[], groupSize: number): Durability {
    const sites = holders.map((node) => ({ node, region: this.region(node) }));
    return levelReached(sites, groupSize);
  }
}
