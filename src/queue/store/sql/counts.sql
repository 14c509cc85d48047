-- Counts tasks by state: live ones by queue and by lease holder, through their indexes; finished ones from the stored
-- totals.
select state, queue, case state when 'RUNNING' then last_assigned_node end as node_id, count(*) as count
  from tasks where finished_at is null and ready group by 1, 2, 3
union all
select state, queue, null, count(*) from tasks where finished_at is null and not ready group by 1, 2
union all
select state, null, null, count from task_totals
