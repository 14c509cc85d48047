-- Ids newest first, before an id; every filter is optional.
select id from tasks
 where ($1::bigint is null or id < $1)
   and ($2::task_state[] is null or state = any ($2::task_state[]))
   and ($3::text is null or executor = $3)
   and ($4::text is null or last_assigned_node = $4)
   and ($5::text is null or schedule_id = $5)
   and ($6::text is null or queue = $6)
 order by id desc limit $7
