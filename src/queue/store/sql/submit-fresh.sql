-- The same as submit.sql for the first attempt of a batch without keys: no conflict is possible, and an insert
-- without that check is cheaper by a third.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), wanted as (
  select id, executor, lane, priority, max_attempts, input, idempotency_key, content_hash, unique_key, placement,
         coalesce(run_after, clock_timestamp() + delay_ms * interval '1 millisecond') as run_after, waiting_on,
         attempt_timeout_ms, clock_timestamp() + timeout_ms * interval '1 millisecond' as deadline, queue, backoff
    from unnest(
    $3::bigint[], $4::text[], $5::text[], $6::int[], $7::int[], $8::text[], $9::text[], $10::text[], $11::text[],
    $12::text[], $13::timestamptz[], $14::int[], $15::float8[], $19::int[], $20::float8[],
    $21::text[], $22::text[]
  ) as w(id, executor, lane, priority, max_attempts, input, idempotency_key, content_hash, unique_key,
         placement, run_after, waiting_on, delay_ms, attempt_timeout_ms, timeout_ms, queue, backoff)
), inserted as (
  insert into tasks (id, executor, lane, ready, priority, max_attempts, input, idempotency_key, content_hash,
                     unique_key, placement_constraints, run_after, waiting_on, attempt_timeout_ms, deadline, queue, backoff, dependent, history)
  select w.id, w.executor, w.lane,
         w.waiting_on = 0 and (w.run_after is null or w.run_after <= clock_timestamp()),
         w.priority, w.max_attempts, w.input::jsonb, w.idempotency_key, w.content_hash,
         w.unique_key, w.placement::jsonb, w.run_after, w.waiting_on, w.attempt_timeout_ms, w.deadline, w.queue, w.backoff::jsonb, w.waiting_on > 0,
         array[row('created', null, 'QUEUED', $16::text, 1, $1::bigint, clock_timestamp(), null)::task_event]
    from wanted w, guard
  returning id
), waiting as (
  insert into task_dependencies (task_id, depends_on)
  select d.task_id, d.depends_on
    from unnest($17::bigint[], $18::bigint[]) as d(task_id, depends_on) join inserted i on i.id = d.task_id
  on conflict do nothing
)
select (select count(*) from guard) as guarded, (select count(*) from inserted) as changed
