/**
 * Why tasks of the chaos run needed more than one attempt. The history of each lost attempt, where it ran, since when
 * and why it was requeued, is matched with the injected faults: only a fault of this node, or on its way to the leader,
 * and long enough, explains it. Faults of the leader or the database are no reason to take work from a healthy worker.
 */

import type { ChaosLeases, Fault } from "./chaos-faults.ts";
import type { TestPostgres } from "./server.ts";

/** An attempt that ended without its task. Times are of the wall clock. */
interface LostAttempt {
  readonly task: string;
  readonly attempt: number;
  readonly nodeId: string;
  readonly assignedAt: number;
  readonly lostAt: number;
  /** Another leader took it back than had granted it. */
  readonly leaderChanged: boolean;
  /** Reason in the history. */
  readonly reason: string;
  readonly words: string;
}

export interface ExplainedAttempt extends LostAttempt {
  /** Null: nothing that happened explains it. */
  readonly because: string | null;
  /** The number of the fault that it is put down to. */
  readonly fault: number | null;
}

/** Time from the expiry of a lease to its return: electing the leader that checks it, on a busy machine. */
const LATE_MS = 15_000;
/** Largest part of a lease that has passed when a fault begins: leases are renewed three times per duration. */
const RENEWED_SHARE = 1 / 3;
/** A renewal on a busy machine may be so late. */
const RENEWED_LATE_MS = 2_000;
/** A call without an answer is given up, and then the grace of a closed connection passes. */
const GIVEN_UP_MS = 10_000;

export async function explainAttempts(
  server: TestPostgres,
  database: string,
  faults: readonly Fault[],
  leases: ChaosLeases,
): Promise<readonly ExplainedAttempt[]> {
  const rows = await server.query(
    database,
    `select e.task_id::text, e.attempt_id, e.node_id, extract(epoch from e."timestamp") * 1000 as lost_at,
            extract(epoch from a."timestamp") * 1000 as assigned_at, a.epoch < e.epoch as leader_changed,
            e.details ->> 'reason' as reason,
            coalesce(e.details -> 'error' ->> 'message', '') as words
       from task_events e left join lateral (
              select x."timestamp", x.epoch from task_events x
               where x.task_id = e.task_id and x.event_id < e.event_id and x.event_type = 'assigned'
               order by x.event_id desc limit 1
            ) a on true
      where event_type in ('reassigned', 'failed') and new_state = 'QUEUED'
      order by e."timestamp"`,
  );
  return rows.map((row) => {
    const lost: LostAttempt = {
      task: String(row["task_id"]),
      attempt: Number(row["attempt_id"]),
      nodeId: String(row["node_id"]),
      assignedAt: Number(row["assigned_at"]),
      lostAt: Number(row["lost_at"]),
      leaderChanged: row["leader_changed"] === true,
      reason: String(row["reason"]),
      words: String(row["words"]),
    };
    return { ...lost, ...explanation(lost, faults, leases) };
  });
}

type Explanation = Pick<ExplainedAttempt, "because" | "fault">;

export function explanation(
  lost: LostAttempt,
  faults: readonly Fault[],
  leases: ChaosLeases,
): Explanation {
  const { nodeId, assignedAt, lostAt, reason, words } = lost;
  if (reason === "failed" && words === "it fails once, as planned")
    return { because: "the task fails once, as planned", fault: null };
  const by = (because: string, explains: (fault: Fault) => boolean): Explanation | undefined => {
    const fault = faults.findIndex(explains);
    return fault === -1 ? undefined : { because, fault };
  };
  const overlaps = ({ from, to }: Fault): boolean =>
    from <= lostAt && to >= assignedAt && lostAt - to <= LATE_MS;
  const lasted = (fault: Fault, ms: number): boolean =>
    overlaps(fault) && Math.min(fault.to, lostAt) - fault.from >= ms;
  const own = (fault: Fault): boolean => fault.nodeId === nodeId;
  // A process that was killed never comes back under its id: whenever its work returns, that is why.
  const killed = (it: Fault): boolean => own(it) && it.kind === "kill" && it.from <= lostAt;
  if (reason === "undelivered") {
    const broken = (fault: Fault): boolean =>
      overlaps(fault) && (fault.led || own(fault) || fault.nodeId === null);
    return (
      by("its grant was for a node that was killed, which costs no attempt", killed) ??
      by("its grant was lost on the way, which costs no attempt", broken) ??
      // Without a fault: one that cannot renew in time on a busy machine stops, and with it what it was to answer.
      (lost.leaderChanged ? LOST_WITH_LEADER : NOT_EXPLAINED)
    );
  }
  const silentMs = leases.taskLeaseMs * (1 - RENEWED_SHARE) - RENEWED_LATE_MS;
  return (
    by("its node was killed", killed) ??
    by(
      "its node stood still for longer than its lease",
      (it) => reason === "expired" && own(it) && it.kind === "stop" && lasted(it, silentMs),
    ) ??
    by(
      "its way to the leader was silent for longer than its lease",
      (it) => reason === "expired" && it.kind === "leader unreachable" && lasted(it, silentMs),
    ) ??
    // The leader is found in the database: a node that cannot reach it does not find the next one.
    by(
      "another leader was there, and its node could not look it up",
      (it) =>
        reason === "expired" &&
        lost.leaderChanged &&
        own(it) &&
        it.kind === "database unreachable" &&
        lasted(it, silentMs),
    ) ??
    by(
      "its way to the leader was silent until it hung up",
      (it) => reason === "lost" && it.kind === "leader unreachable" && lasted(it, GIVEN_UP_MS),
    ) ??
    NOT_EXPLAINED
  );
}

const NOT_EXPLAINED: Explanation = { because: null, fault: null };
const LOST_WITH_LEADER: Explanation = {
  because: "its grant was lost with the leader that gave it, which costs no attempt",
  fault: null,
};
