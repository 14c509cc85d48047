-- Skips missed ticks that are not caught up.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), moved as (
  update task_schedules s set next_tick = $5::timestamptz
    from guard where s.schedule_id = $3 and s.next_tick = $4::timestamptz
  returning 1
)
select (select count(*) from guard) as guarded, (select count(*) from moved) as changed
