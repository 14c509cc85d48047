-- Pauses or resumes a schedule; a resumed one continues with the next tick from now.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), changed as (
  update task_schedules s
     set paused = $4::boolean, next_tick = case when s.paused and not $4::boolean then $5::timestamptz else s.next_tick end
    from guard where s.schedule_id = $3
  returning 1
)
select (select count(*) from guard) as guarded, (select count(*) from changed) as changed
