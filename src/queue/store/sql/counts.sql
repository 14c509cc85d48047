-- Tasks by state: the live ones counted through their indexes, the finished ones as they were kept.
select state, count(*) as count from tasks where finished_at is null and ready group by state
union all
select state, count(*) from tasks where finished_at is null and not ready group by state
union all
select state, count from task_totals
