-- Newest first, before an id; every filter is optional.
select id, executor, state, attempt_id, max_attempts, priority, input, result, error, idempotency_key, unique_key,
       schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id, lease_expires_at, run_after,
       created_at, started_at, finished_at
  from tasks
 where ($1::bigint is null or id < $1)
   and ($2::task_state[] is null or state = any ($2::task_state[]))
   and ($3::text is null or executor = $3)
   and ($4::text is null or last_assigned_node = $4)
   and ($5::text is null or id::text = $5 or executor ilike '%' || $5 || '%'
        or idempotency_key ilike '%' || $5 || '%' or input::text ilike '%' || $5 || '%')
 order by id desc limit $6
