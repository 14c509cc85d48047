-- Removes finished tasks on request. Dependencies of a live task are kept.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), gone as (
  delete from tasks t using guard
   where t.id = any ($3::bigint[]) and t.finished_at is not null
     and not exists (select 1 from task_dependencies d join tasks w on w.id = d.task_id
                      where d.depends_on = t.id and w.finished_at is null)
  returning t.id, t.state
), waits as (
  delete from task_dependencies d using gone where d.task_id = gone.id
), totals as (
  update task_totals c set count = c.count - n.count
    from (select state, count(*) as count from gone group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded, (select count(*) from gone) as changed
