select *, not paused and next_tick <= clock_timestamp() as due, extract(epoch from clock_timestamp()) * 1000 as now_ms
  from task_schedules order by schedule_id
