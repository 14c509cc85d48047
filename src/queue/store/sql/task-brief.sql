-- Tasks as in a list: payloads above $2 bytes are left out and named, errors are cut.
select t.id, executor, queue, state, attempt_id, max_attempts, attempts_forgiven, backoff, priority, idempotency_key, unique_key,
       schedule_id, placement_constraints, waiting_on, last_assigned_node, lease_id, lease_expires_at, run_after,
       attempt_timeout_ms, deadline,
       created_at, started_at, finished_at,
       case when s.input then t.input end as input,
       case when s.result then t.result end as result,
       array_remove(array[case when not s.input then 'input' end, case when not s.result then 'result' end], null) as omitted,
       case when error is not null then jsonb_strip_nulls(
         jsonb_build_object('name', error->>'name', 'message', left(error->>'message', $2::int))) end as error
  from tasks t
 cross join lateral (
   select case when pg_column_size(t.input) <= $2::int then octet_length(t.input::text) <= $2::int else false end as input,
          case when t.result is null then true
               when pg_column_size(t.result) <= $2::int then octet_length(t.result::text) <= $2::int
               else false end as result
 ) s
 where t.id = any ($1::bigint[])
 order by t.id desc
