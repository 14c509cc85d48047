select id, executor, queue, state, attempt_id, max_attempts, attempts_forgiven, backoff, priority, input, result, error,
       idempotency_key, unique_key, schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id,
       lease_expires_at, run_after, attempt_timeout_ms, deadline, created_at, started_at, finished_at,
       case when waiting_on > 0 then (
         select jsonb_agg(depends_on::text order by depends_on) from task_dependencies d where d.task_id = t.id and not d.settled
       ) end as waits_for,
       case when dependent then (
         select jsonb_object_agg(coalesce(name, depends_on::text), depends_on::text) from task_dependencies d where d.task_id = t.id
       ) end as depends_on
  from tasks t where id = any ($1::bigint[])
