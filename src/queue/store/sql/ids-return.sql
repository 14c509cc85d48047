-- A clean stop of a database that one process opens at a time: the next leader continues with the rest of the last
-- block.
select setval('task_id_seq', $1::bigint, false) from task_id_seq where is_called and last_value = $2::bigint
