-- Requeues a task that did not succeed with fresh attempts: requested by a person, so recorded as such. One that was
-- cancelled with its dependency waits for live ones, if any.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), wanted as (
  select t.id, t.state as old_state,
         (select count(*)::int from task_dependencies d join tasks f on f.id = d.depends_on
           where d.task_id = t.id and f.finished_at is null) as waiting_on
    from tasks t, guard
   where t.id = any ($3::bigint[]) and t.state in ('FAILED', 'CANCELLED')
     and not exists (select 1 from tasks u where u.unique_key = t.unique_key and u.finished_at is null)
), revived as (
  update tasks t
     set state = 'QUEUED', ready = w.waiting_on = 0, waiting_on = w.waiting_on, finished_at = null, error = null,
         result = null, lease_id = null, attempt_id = t.attempt_id + 1, attempts_forgiven = t.attempt_id, snoozes = 0,
         run_after = null, deadline = null,
         history = t.history || row('requeued', w.old_state, 'QUEUED', null, t.attempt_id + 1, $1::bigint,
                                    clock_timestamp(), '{"reason":"requeued by request"}'::jsonb)::task_event
    from wanted w
   where t.id = w.id and t.state = w.old_state
  returning t.id, t.lane, t.executor, t.queue, t.priority, t.attempt_id, t.attempt_timeout_ms, t.dependent, t.placement_constraints, t.input, t.ready, w.old_state
), waits as (
  update task_dependencies d set settled = false
    from revived r, tasks f
   where d.task_id = r.id and f.id = d.depends_on and f.finished_at is null and d.settled
), totals as (
  update task_totals c set count = c.count - n.count
    from (select old_state, count(*) as count from revived group by old_state) n where c.state = n.old_state
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'lane', lane, 'executor', executor, 'queue', queue, 'priority', priority,
         'attempt_id', attempt_id, 'attempt_timeout_ms', attempt_timeout_ms, 'dependent', dependent, 'placement_constraints', placement_constraints, 'input', input, 'ready', ready,
         'old_state', old_state)) from revived), '[]') as revived
