select * from task_events where task_id = $1 and event_id > $2 order by event_id limit $3
