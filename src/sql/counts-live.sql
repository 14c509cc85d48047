-- Unfinished tasks by state, through the partial indexes; never touches finished rows.
select state, count(*) as count, clock_timestamp() as at from tasks where finished_at is null and ready group by state
union all
select state, count(*), clock_timestamp() from tasks where finished_at is null and not ready group by state
