-- Ids whose task holds a text, newest first: looked for among the newest $8 of those that fit the filters,
-- because no index helps. $6 is a pattern whose wildcards were escaped, $7 the text itself.
select id from (
  select id, executor, idempotency_key, unique_key, input from tasks
   where ($1::bigint is null or id < $1)
     and ($2::task_state[] is null or state = any ($2::task_state[]))
     and ($3::text is null or executor = $3)
     and ($4::text is null or last_assigned_node = $4)
     and ($5::text is null or schedule_id = $5)
   order by id desc limit $8
) newest
 where id::text = $7 or executor ilike $6 or idempotency_key ilike $6 or unique_key ilike $6 or input::text ilike $6
 order by id desc limit $9
