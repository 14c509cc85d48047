/** Counters of job clocks under the names of AD-34: a family, and one count for each label. */

export type TimeoutCount =
  | "checks"
  | "detected"
  | "reportsSent"
  | "reportsFailed"
  | "globalDeclared"
  | "progressReceived"
  | "timeoutReceived"
  | "fenceRejected"
  | "leaderTransfers"
  | "stopped"
  | "cleaned";

type TimeoutCounts = Readonly<Record<TimeoutCount, ReadonlyMap<string, number>>>;

export interface TimeoutView {
  /** Clocks running now. */
  readonly active: number;
  readonly counts: TimeoutCounts;
}

/** Labels of one family: datacenters, reasons, strategies. */
const LABELS_MAX = 256;

export class TimeoutCounters {
  readonly #counts: Record<TimeoutCount, Map<string, number>> = {
    ...{ checks: new Map(), detected: new Map(), reportsSent: new Map(), reportsFailed: new Map() },
    ...{ globalDeclared: new Map(), progressReceived: new Map(), timeoutReceived: new Map() },
    ...{
      fenceRejected: new Map(),
      leaderTransfers: new Map(),
      stopped: new Map(),
      cleaned: new Map(),
    },
  };

  get counts(): TimeoutCounts {
    return this.#counts;
  }

  count(what: TimeoutCount, label = ""): void {
    const counts = this.#counts[what];
    const known = counts.get(label);
    if (known === undefined && counts.size >= LABELS_MAX) return;
    counts.set(label, (known ?? 0) + 1);
  }
}
