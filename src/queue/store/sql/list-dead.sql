-- Ids of dead letters and cancelled tasks, newest first, before an id, by their own index: each has a reason.
select id from tasks
 where finished_at is not null and error is not null and state = any ($1::task_state[])
   and ($2::bigint is null or id < $2)
 order by id desc limit $3
