with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), gone as (delete from task_schedules s using guard where s.schedule_id = $3 returning 1)
select (select count(*) from guard) as guarded, (select count(*) from gone) as changed
