/** Invariants of a queue's database after any faults, checked on the committed history. */

import pg from "pg";
import {
  checkHistory,
  type HistoryEvent,
  isTerminal,
  type TaskState,
} from "../../../src/core/queue/states.ts";

export interface AuditResult {
  readonly tasks: number;
  readonly states: Readonly<Record<string, number>>;
  readonly attemptsMax: number;
  readonly lateResults: number;
  readonly epochs: number;
  /** The first few things that are wrong. */
  readonly problems: readonly string[];
}

interface AuditedRow {
  readonly id: string;
  readonly state: TaskState;
  readonly attempt_id: number;
  /** The attempt that executors of these tests answer with: a fenced one's answer would show. */
  readonly answered: number | null;
  readonly events: readonly (HistoryEvent & { readonly at: string })[];
}

export async function audit(
  url: string,
  options: { readonly allTerminal: boolean },
): Promise<AuditResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const rows = await client.query<AuditedRow>(
      `select id::text, state, attempt_id, (result -> 'attempt')::int as answered,
              (select jsonb_agg(jsonb_build_object('event_type', event_type, 'old_state', old_state,
                 'new_state', new_state, 'attempt_id', attempt_id, 'epoch', epoch, 'at', "timestamp") order by event_id)
                 from task_events e where e.task_id = t.id) as events
         from tasks t order by id`,
    );
    const problems = rows.rows.flatMap((row) => taskProblems(row, options.allTerminal));
    problems.push(...(await epochProblems(client)));
    const states: Record<string, number> = {};
    let lateResults = 0;
    for (const row of rows.rows) {
      states[row.state] = (states[row.state] ?? 0) + 1;
      lateResults += row.events.filter((event) => event.event_type === "late_result").length;
    }
    const epochs = new Set(rows.rows.flatMap((row) => row.events.map((event) => event.epoch)));
    return {
      tasks: rows.rows.length,
      states,
      attemptsMax: Math.max(0, ...rows.rows.map((row) => row.attempt_id)),
      lateResults,
      epochs: epochs.size,
      problems: problems.slice(0, 10),
    };
  } finally {
    await client.end();
  }
}

function taskProblems(row: AuditedRow, allTerminal: boolean): readonly string[] {
  const problem = checkHistory(row.events);
  if (problem !== undefined) return [`task ${row.id}: ${problem}`];
  const moves = row.events.filter(
    ({ event_type: type }) => type !== "late_result" && type !== "lease_renewal_failed",
  );
  const last = moves.at(-1);
  if (last?.new_state !== row.state)
    return [`task ${row.id} is ${row.state}, its history ends in ${last?.new_state}`];
  const terminal = moves.filter(({ new_state: to }) => to !== null && isTerminal(to)).length;
  const requeued = moves.filter(({ event_type: type }) => type === "requeued").length;
  if (allTerminal && terminal !== 1 + requeued) return [`task ${row.id} ended ${terminal} times`];
  const { answered } = row;
  if (answered !== null && answered !== row.attempt_id)
    return [`task ${row.id}: result of attempt ${answered} stored for attempt ${row.attempt_id}`];
  return [];
}

/** No write by an old epoch after a newer one, and one writer per epoch: over all tasks, by time. */
async function epochProblems(client: pg.Client): Promise<readonly string[]> {
  const rows = await client.query<{
    task_id: string;
    epoch: string;
    before: string;
    timestamp: Date;
  }>(
    `select * from (
       select task_id, epoch, "timestamp",
              max(epoch) over (order by "timestamp", epoch rows between unbounded preceding and 1 preceding) as before
         from task_events where event_type <> 'started') e
      where epoch < before limit 3`,
  );
  return rows.rows.map(
    (row) =>
      `task ${row.task_id}: epoch ${row.epoch} wrote at ${row.timestamp.toISOString()} after epoch ${row.before}`,
  );
}
