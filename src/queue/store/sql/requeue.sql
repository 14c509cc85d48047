-- RUNNING -> QUEUED with the next attempt, or FAILED when attempts are exhausted. Used for retryable failures, for
-- expired leases, for returned or undelivered work, which costs no attempt, and for snoozes: those cost none up to $9
-- times, and then count as failures. The leader counts expiry, on a monotonic clock.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), wanted as (
  select * from unnest($3::bigint[], $4::uuid[], $5::text[], $6::float8[], $7::text[], $8::timestamptz[])
    as w(id, lease_id, reason, delay_ms, error, again_at)
), moved as (
  update tasks t
     set state = case when x.spent then 'FAILED'::task_state else 'QUEUED'::task_state end,
         attempt_id = t.attempt_id + case when x.spent then 0 else 1 end,
         attempts_forgiven = t.attempts_forgiven + case when x.forgiven then 1 else 0 end,
         snoozes = t.snoozes + case when w.reason = 'snoozed' and not x.spent then 1 else 0 end,
         ready = x.spent or (w.again_at is null and w.delay_ms <= 0),
         run_after = case when x.spent or (w.again_at is null and w.delay_ms <= 0) then t.run_after
                          else coalesce(w.again_at, clock_timestamp() + w.delay_ms * interval '1 millisecond') end,
         error = coalesce(x.error, t.error),
         lease_id = case when x.spent then t.lease_id end,
         lease_expires_at = null,
         finished_at = case when x.spent then clock_timestamp() end,
         history = t.history || row(
           case when x.spent or w.reason = 'failed' then 'failed'::task_event_type else 'reassigned' end,
           'RUNNING', case when x.spent then 'FAILED'::task_state else 'QUEUED' end,
           t.last_assigned_node, t.attempt_id, $1::bigint, clock_timestamp(),
           jsonb_build_object('reason', w.reason, 'retry', not x.spent)
             || coalesce(jsonb_build_object('error', x.error), '{}'))::task_event
    from wanted w
    join tasks o on o.id = w.id
   cross join lateral (
     select s.spent, w.reason in ('released', 'undelivered', 'snoozed') and not s.spent as forgiven,
            case when w.reason <> 'snoozed' or s.spent then w.error::jsonb end as error
       from (select case w.reason when 'released' then false
                                  when 'undelivered' then false
                                  when 'snoozed' then o.snoozes >= $9::int
                                  else o.attempt_id - o.attempts_forgiven >= o.max_attempts end as spent) s
   ) x, guard
   where t.id = w.id and t.state = 'RUNNING' and t.lease_id = w.lease_id
  returning t.id, t.state, t.attempt_id, t.ready
), totals as (
  update task_totals c set count = c.count + n.count
    from (select state, count(*) as count from moved where state = 'FAILED' group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'state', state, 'attempt', attempt_id, 'ready', ready))
                   from moved), '[]') as moved
