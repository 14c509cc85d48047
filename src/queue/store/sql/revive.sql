-- A dead letter goes back to the queue with fresh attempts: asked for by a person, so recorded as such.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), revived as (
  update tasks t
     set state = 'QUEUED', ready = true, finished_at = null, error = null, result = null, lease_id = null,
         attempt_id = t.attempt_id + 1, attempts_forgiven = t.attempt_id, run_after = null,
         history = t.history || row('requeued', 'FAILED', 'QUEUED', null, t.attempt_id + 1, $1::bigint, clock_timestamp(),
                                    '{"reason":"requeued by request"}'::jsonb)::task_event
    from guard
   where t.id = any ($3::bigint[]) and t.state = 'FAILED'
     and not exists (select 1 from tasks u where u.unique_key = t.unique_key and u.finished_at is null)
  returning t.id, t.lane, t.executor, t.priority, t.attempt_id, t.placement_constraints, t.input, t.state, t.ready
), totals as (
  update task_totals c set count = c.count - n.count
    from (select count(*) as count from revived) n where c.state = 'FAILED' and n.count > 0
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'lane', lane, 'executor', executor, 'priority', priority, 'attempt_id', attempt_id,
         'placement_constraints', placement_constraints, 'input', input)) from revived), '[]') as ready
