-- Walks tasks by id, a bounded number at a time, and removes those that finished long ago. The walk
-- goes on after `last` while all that it looked at were old.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), looked as (
  select id, created_at < clock_timestamp() - $3::float8 * interval '1 millisecond' as old,
         finished_at < clock_timestamp() - $3::float8 * interval '1 millisecond' as done
    from tasks, guard where id > $5::bigint order by id limit $4
), gone as (
  delete from tasks t using looked l where t.id = l.id and l.done returning t.state
), totals as (
  update task_totals c set count = c.count - n.count
    from (select state, count(*) as count from gone group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded,
       (select count(*) = $4 and bool_and(old) from looked) as more, (select max(id) from looked) as last
