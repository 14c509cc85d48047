-- Ids whose task holds a text, newest first: looked for among the newest $7 of those that fit the filters,
-- because no index helps. $5 is a pattern whose wildcards were escaped, $6 the text itself.
select id from (
  select id, executor, idempotency_key, unique_key, input from tasks
   where ($1::bigint is null or id < $1)
     and ($2::task_state[] is null or state = any ($2::task_state[]))
     and ($3::text is null or executor = $3)
     and ($4::text is null or last_assigned_node = $4)
   order by id desc limit $7
) newest
 where id::text = $6 or executor ilike $5 or idempotency_key ilike $5 or unique_key ilike $5 or input::text ilike $5
 order by id desc limit $8
