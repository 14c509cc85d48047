-- Tasks not yet finished, in the order they would run; never touches finished rows.
select * from tasks
 where finished_at is null and state = any ($1::task_state[])
 order by priority desc, id limit $2
