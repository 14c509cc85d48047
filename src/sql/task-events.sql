select event_id, task_id, event_type, old_state, new_state, node_id, attempt_id, epoch, "timestamp", details
  from task_events where task_id = $1 and event_id > $2 order by event_id limit $3
