-- Returns the number of log lines and the latest progress of a task's attempts.
select coalesce(l.attempt_id, p.attempt_id) as attempt_id, coalesce(l.lines, 0) as lines, p.value as progress
  from (select attempt_id, count(*) as lines from task_log_lines where task_id = $1 group by attempt_id) l
  full join (select attempt_id, value from task_progress where task_id = $1) p on p.attempt_id = l.attempt_id
