-- Of a task whose lease stands: when it was submitted, and what the last attempt before the present one told last.
select t.created_at::text as submitted_at,
       (select p.value from task_progress p where p.task_id = t.id and p.attempt_id < t.attempt_id
         order by p.attempt_id desc limit 1) as progress
  from tasks t where t.id = $1 and t.lease_id = $2 and t.state = 'RUNNING'
