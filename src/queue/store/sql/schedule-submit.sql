-- Submits once per tick over the cluster: only the writer that advances the tick may submit for it. Without a tick
-- ($4, $5 and $18 are null) the task was requested now, and ticks stay as they are.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), moved as (
  update task_schedules s set next_tick = coalesce($5::timestamptz, s.next_tick), last_tick = coalesce($18::timestamptz, s.last_tick),
         last_task = $6::bigint
    from guard where s.schedule_id = $3 and ($4::timestamptz is null or s.next_tick = $4::timestamptz and not s.paused)
  returning s.schedule_id
), inserted as (
  insert into tasks (id, executor, lane, priority, max_attempts, input, unique_key, placement_constraints, schedule_id,
                     queue, attempt_timeout_ms, deadline, backoff, history)
  select $6::bigint, $7, $8, $9::int, $10::int, $11::jsonb, $12, $13::jsonb, $3,
         $14, $15::int, clock_timestamp() + $16::float8 * interval '1 millisecond', $17::jsonb,
         array[row('created', null, 'QUEUED', null, 1, $1::bigint, clock_timestamp(),
                   jsonb_build_object('schedule', $3::text, 'tick', $18::timestamptz))::task_event]
    from moved
  on conflict do nothing
  returning id
)
select (select count(*) from guard) as guarded, (select count(*) from moved) as changed,
       (select count(*) from inserted) as inserted
