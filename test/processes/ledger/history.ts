/**
 * Client histories, and a check that one log per job explains them. A job's events have indexes in one order; an append
 * takes effect at its index, a strong read right after the last index it shows. The history is linearizable exactly if
 * no operation that had returned before another began comes after it. (I2, I8)
 */

export interface Operation {
  readonly job: string;
  readonly kind: "append" | "read";
  readonly eventId: string | null;
  /** Monotonic milliseconds of the clients' process. */
  readonly invokedAt: number;
  /** Infinity: the outcome is unknown. */
  returnedAt: number;
  /** The place: of the event, or the last one the read showed. */
  seq: number | null;
  /** For reads: the hash over all events up to its index. */
  chain: string | null;
}

/** The job's log as all replicas have it at the end. */
export interface FinalLog {
  readonly job: string;
  readonly appliedSeq: number;
  readonly events: readonly { readonly seq: number; readonly eventId: string }[];
}

export function checkHistory(
  operations: readonly Operation[],
  logs: readonly FinalLog[],
): readonly string[] {
  const byJob = new Map<string, Operation[]>();
  for (const operation of operations) {
    const known = byJob.get(operation.job);
    if (known === undefined) byJob.set(operation.job, [operation]);
    else known.push(operation);
  }
  const problems: string[] = [];
  for (const log of logs) {
    problems.push(...checkJob(log, byJob.get(log.job) ?? []));
    byJob.delete(log.job);
  }
  for (const [job, orphans] of byJob) {
    if (orphans.some(({ seq }) => seq !== null)) problems.push(`${job}: acknowledged, and gone`);
  }
  return problems;
}

function checkJob(log: FinalLog, operations: readonly Operation[]): readonly string[] {
  const problems: string[] = [];
  const { job } = log;
  const places = new Map<string, number>();
  for (const { eventId, seq } of log.events) {
    if (places.has(eventId)) problems.push(`${job}: ${eventId} is in the log twice`);
    places.set(eventId, seq);
  }
  const asked = new Set(operations.map(({ eventId }) => eventId));
  for (const eventId of places.keys()) {
    if (!eventId.startsWith("create/") && !asked.has(eventId)) {
      problems.push(`${job}: ${eventId} was never asked for`);
    }
  }
  const placed: Operation[] = [];
  for (const operation of operations) {
    const place =
      operation.eventId === null ? operation.seq : (places.get(operation.eventId) ?? null);
    if (operation.kind === "append" && operation.seq !== null && place !== operation.seq) {
      const found = place === null ? "is lost" : `lies at ${place}`;
      problems.push(
        `${job}: ${operation.eventId} was acknowledged at ${operation.seq} and ${found}`,
      );
    }
    if (place === null) continue;
    if (place > log.appliedSeq) problems.push(`${job}: a read showed ${place}, beyond the end`);
    placed.push({ ...operation, seq: place });
  }
  problems.push(...checkOrder(job, placed), ...checkChains(job, placed));
  return problems;
}

/** Sweeps over time: an operation must not come before anything that had returned when it began. */
function checkOrder(job: string, placed: readonly Operation[]): readonly string[] {
  const problems: string[] = [];
  const begins = [...placed].sort((a, b) => a.invokedAt - b.invokedAt);
  const ends = [...placed].sort((a, b) => a.returnedAt - b.returnedAt);
  let returned = 0;
  let reached = -1;
  let reachedBy = "";
  for (const operation of begins) {
    for (; (ends[returned]?.returnedAt ?? Infinity) < operation.invokedAt; returned++) {
      const { seq, kind, eventId } = ends[returned] as Operation;
      if ((seq ?? -1) <= reached) continue;
      reached = seq ?? -1;
      reachedBy = eventId ?? kind;
    }
    const seq = operation.seq ?? -1;
    // A read may show the same index again; an append needs its own.
    if (operation.kind === "read" ? seq >= reached : seq > reached) continue;
    const who = operation.eventId ?? "a strong read";
    problems.push(`${job}: ${who} at ${seq} began after ${reachedBy} at ${reached} had returned`);
  }
  return problems;
}

function checkChains(job: string, placed: readonly Operation[]): readonly string[] {
  const chains = new Map<number, string>();
  const problems: string[] = [];
  for (const { seq, chain } of placed) {
    if (chain === null || seq === null) continue;
    const known = chains.get(seq);
    if (known !== undefined && known !== chain) problems.push(`${job}: two histories up to ${seq}`);
    chains.set(seq, chain);
  }
  return problems;
}
