-- Ids of tasks not yet finished, newest first, before an id; never touches finished rows.
select id from (
  select id from tasks
   where finished_at is null and ready and state = any ($1::task_state[]) and ($2::bigint is null or id < $2)
  union all
  select id from tasks
   where finished_at is null and not ready and state = any ($1::task_state[]) and ($2::bigint is null or id < $2)
) live
 order by id desc limit $3
