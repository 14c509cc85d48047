-- Ended tasks, by request.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), gone as (
  delete from tasks t using guard where t.id = any ($3::bigint[]) and t.finished_at is not null returning t.state
), totals as (
  update task_totals c set count = c.count - n.count
    from (select state, count(*) as count from gone group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded, (select count(*) from gone) as changed
