-- Tasks by state: the live ones by queue, counted through their indexes, the finished ones as they were kept.
select state, queue, count(*) as count from tasks where finished_at is null and ready group by state, queue
union all
select state, queue, count(*) from tasks where finished_at is null and not ready group by state, queue
union all
select state, null, count from task_totals
