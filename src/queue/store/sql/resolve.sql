-- Settles dependencies on finished tasks: dependents become ready, or are cancelled when a dependency did not
-- succeed, or was removed before it was known as one. $3 limits it to some ids; null checks all. Repeatable.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), settled as (
  update task_dependencies d set settled = true
    from guard, task_dependencies o left join tasks f on f.id = o.depends_on
   where d.depends_on = o.depends_on and d.task_id = o.task_id and not o.settled
     and (f.id is null or f.finished_at is not null)
     and ($3::bigint[] is null or o.depends_on = any ($3::bigint[]))
  returning d.task_id, d.depends_on, f.state
), tally as (
  select task_id, count(*)::int as settled, min(depends_on) filter (where state is distinct from 'SUCCEEDED') as broken_by
    from settled group by task_id
), moved as (
  update tasks t
     set waiting_on = t.waiting_on - y.settled,
         ready = y.broken_by is null and t.waiting_on = y.settled
                 and (t.run_after is null or t.run_after <= clock_timestamp()),
         state = case when y.broken_by is null then t.state else 'CANCELLED'::task_state end,
         finished_at = case when y.broken_by is not null then clock_timestamp() end,
         error = case when y.broken_by is null then t.error
                      else jsonb_build_object('message', 'task ' || y.broken_by || ', which this one depends on, did not succeed') end,
         history = case when y.broken_by is null then t.history
                        else t.history || row('cancelled', 'QUEUED', 'CANCELLED', null, t.attempt_id, $1::bigint,
                          clock_timestamp(), jsonb_build_object('reason', 'dependency', 'depends_on', y.broken_by::text)
                        )::task_event end
    from tally y
   where t.id = y.task_id and t.state = 'QUEUED'
  returning t.id, t.lane, t.executor, t.queue, t.priority, t.attempt_id, t.attempt_timeout_ms, t.dependent, t.placement_constraints, t.input, t.state, t.ready
), totals as (
  update task_totals c set count = c.count + n.count
    from (select state, count(*) as count from moved where state = 'CANCELLED' group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'lane', lane, 'executor', executor, 'queue', queue, 'priority', priority, 'attempt_id', attempt_id, 'attempt_timeout_ms', attempt_timeout_ms, 'dependent', dependent,
         'placement_constraints', placement_constraints, 'input', input))
                   from moved where ready and state = 'QUEUED'), '[]') as ready,
       coalesce((select jsonb_agg(id) from moved where state = 'CANCELLED'), '[]') as cancelled
