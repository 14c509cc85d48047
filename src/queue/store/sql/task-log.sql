-- Lines of a task's log after one of them; of one attempt, or of all when $4 is null.
select attempt_id, line, at, text from task_log_lines
 where task_id = $1 and (attempt_id, line) > ($2::int, $3::int) and ($4::int is null or attempt_id = $4::int)
 order by attempt_id, line limit $5
