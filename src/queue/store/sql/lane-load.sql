-- The next ready tasks of one lane and priority in order, after an id. Large inputs are fetched when claimed.
select id, executor, queue, priority, attempt_id, attempt_timeout_ms, dependent, placement_constraints,
       case when pg_column_size(input) <= $5::int then input::text end as input,
       extract(epoch from clock_timestamp() - coalesce(run_after, created_at)) * 1000 as waited_ms
  from tasks
 where finished_at is null and ready and lane = $1 and state = 'QUEUED' and priority = $2::int and id > $3::bigint
 order by lane, priority desc, id
 limit $4
