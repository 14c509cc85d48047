-- Returns tasks inserted by transactions of applications, as the leader keeps them, and marks each as fresh once.
with announced as (delete from task_arrivals where task_id = any ($1::bigint[]) returning task_id)
select id, executor, lane, queue, ready, priority, attempt_id, attempt_timeout_ms, dependent, placement_constraints,
       state = 'QUEUED' as queued, id in (select task_id from announced) as fresh,
       case when pg_column_size(input) <= 2048 then input::text end as input,
       extract(epoch from clock_timestamp() - coalesce(run_after, created_at)) * 1000 as waited_ms,
       case when waiting_on > 0 then (
         select jsonb_agg(d.depends_on) from task_dependencies d where d.task_id = tasks.id and not d.settled
       ) end as depends_on
  from tasks where id = any ($1::bigint[])
