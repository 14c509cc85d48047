-- Returns for a task with a valid lease: when it was submitted, and the last progress of the previous attempt.
select t.created_at::text as submitted_at,
       (select p.value from task_progress p where p.task_id = t.id and p.attempt_id < t.attempt_id
         order by p.attempt_id desc limit 1) as progress
  from tasks t where t.id = $1 and t.lease_id = $2 and t.state = 'RUNNING'
