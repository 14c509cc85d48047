-- Ids of tasks that contain a text, newest first: searches the newest $9 of those that match the filters, because no
-- index helps. $7 is a pattern with escaped wildcards, $8 the text itself.
select id from (
  select id, executor, idempotency_key, unique_key, input, error from tasks
   where ($1::bigint is null or id < $1)
     and ($2::task_state[] is null or state = any ($2::task_state[]))
     and ($3::text is null or executor = $3)
     and ($4::text is null or last_assigned_node = $4)
     and ($5::text is null or schedule_id = $5)
     and ($6::text is null or queue = $6)
   order by id desc limit $9
) newest
 where id::text = $8 or executor ilike $7 or idempotency_key ilike $7 or unique_key ilike $7 or input::text ilike $7
    or error->>'message' ilike $7
 order by id desc limit $10
