with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), put as (
  insert into task_schedules (schedule_id, cron, template, next_tick)
  select $3, $4, $5::jsonb, $6::timestamptz from guard
  on conflict (schedule_id) do update
     set cron = excluded.cron, template = excluded.template,
         next_tick = case when task_schedules.cron = excluded.cron then task_schedules.next_tick else excluded.next_tick end
  returning schedule_id
)
select (select count(*) from guard) as guarded, (select count(*) from put) as changed
