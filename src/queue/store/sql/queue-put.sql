with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), put as (
  insert into task_queues (queue, paused, concurrency, rate_count, rate_ms, backoff)
  select $3, $4::boolean, $5::int, $6::int, $7::float8, $8::jsonb from guard
  on conflict (queue) do update
     set paused = excluded.paused, concurrency = excluded.concurrency, rate_count = excluded.rate_count,
         rate_ms = excluded.rate_ms, backoff = excluded.backoff
)
select (select count(*) from guard) as guarded
