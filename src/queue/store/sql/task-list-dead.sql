-- Dead letters and cancelled tasks, newest first, by their own index.
select id, executor, state, attempt_id, max_attempts, priority, input, result, error, idempotency_key, unique_key,
       schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id, lease_expires_at, run_after,
       created_at, started_at, finished_at
  from tasks
 where finished_at is not null and error is not null and state = any ($1::task_state[])
 order by id desc limit $2
