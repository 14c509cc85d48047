select o.task_id, o.name, o.attempt_id, o.hash, o.media_type, f.bytes, f.chunks
  from task_files o join stored_files f on f.hash = o.hash
 where o.task_id = $1::bigint and ($2::text is null or o.name = $2)
 order by o.name
