select id, executor, state, attempt_id, max_attempts, priority, input, result, error, idempotency_key, unique_key,
       schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id, lease_expires_at, run_after,
       created_at, started_at, finished_at
  from tasks where id = any ($1::bigint[])
