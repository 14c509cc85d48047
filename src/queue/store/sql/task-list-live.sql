-- Tasks not yet finished, in the order they would run; never touches finished rows.
select * from (
select id, executor, state, attempt_id, max_attempts, priority, input, result, error, idempotency_key, unique_key,
       schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id, lease_expires_at, run_after,
       created_at, started_at, finished_at
  from tasks where finished_at is null and ready and state = any ($1::task_state[])
union all
select id, executor, state, attempt_id, max_attempts, priority, input, result, error, idempotency_key, unique_key,
       schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id, lease_expires_at, run_after,
       created_at, started_at, finished_at
  from tasks where finished_at is null and not ready and state = any ($1::task_state[])
) live
 order by priority desc, id limit $2
