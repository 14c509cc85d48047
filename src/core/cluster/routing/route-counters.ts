/** What became of routing, counted: the figures of AD-36 under its names. */

/** Pairs of names that are counted apart; what comes on top is not. */
const PAIRS_MAX = 1_024;

type Pairs = ReadonlyMap<string, ReadonlyMap<string, number>>;

export interface RouteCounts {
  /** Jobs that were given to a datacenter, by its health and why it was chosen. */
  readonly decisions: Pairs;
  /** Changes of whom this gate asks first, by why. */
  readonly switches: ReadonlyMap<string, number>;
  /** Another was better, and the present one had not been held for long enough. */
  readonly holdDownBlocks: number;
  /** Jobs that another datacenter took after one had not: from whom, to whom. */
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
