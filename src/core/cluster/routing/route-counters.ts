/** Routing counters, under the names of AD-36. */

/** Maximum number of counted pairs; further pairs are dropped. */
const PAIRS_MAX = 1_024;

type Pairs = ReadonlyMap<string, ReadonlyMap<string, number>>;

export interface RouteCounts {
  /** Jobs assigned to a datacenter, by its health and the reason of the choice. */
  readonly decisions: Pairs;
  /** Changes of the preferred datacenter, by reason. */
  readonly switches: ReadonlyMap<string, number>;
  /** Switches suppressed because the current datacenter was selected too recently. */
  readonly holdDownBlocks: number;
  /** Jobs that fell back to another datacenter: from, to. */
  readonly fallbacks: Pairs;
}

export class RouteCounters implements RouteCounts {
  readonly decisions = new Map<string, Map<string, number>>();
  readonly switches = new Map<string, number>();
  readonly fallbacks = new Map<string, Map<string, number>>();
  holdDownBlocks = 0;

  decided(health: string, reason: string): void {
    countPair(this.decisions, health, reason);
  }

  switched(reason: string): void {
    this.switches.set(reason, (this.switches.get(reason) ?? 0) + 1);
  }

  blocked(): void {
    this.holdDownBlocks++;
  }

  fellBack(from: string, to: string): void {
    countPair(this.fallbacks, from, to);
  }
}

function countPair(pairs: Map<string, Map<string, number>>, one: string, other: string): void {
  const counts = pairs.get(one) ?? new Map<string, number>();
  const size = [...pairs.values()].reduce((sum, each) => sum + each.size, 0);
  if (!counts.has(other) && size >= PAIRS_MAX) return;
  pairs.set(one, counts);
  counts.set(other, (counts.get(other) ?? 0) + 1);
}
