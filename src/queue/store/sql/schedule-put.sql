with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), put as (
  insert into task_schedules (schedule_id, cron, template, next_tick, time_zone, catch_up, catch_up_max)
  select $3, $4, $5::jsonb, $6::timestamptz, $7, $8, $9::int from guard
  on conflict (schedule_id) do update
     set cron = excluded.cron, template = excluded.template, time_zone = excluded.time_zone,
         catch_up = excluded.catch_up, catch_up_max = excluded.catch_up_max,
         next_tick = case when task_schedules.cron = excluded.cron and task_schedules.time_zone = excluded.time_zone
                          then task_schedules.next_tick else excluded.next_tick end
  returning schedule_id
)
select (select count(*) from guard) as guarded, (select count(*) from put) as changed
