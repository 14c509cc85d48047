-- Walks tasks by id, a bounded number at a time, and removes those that finished long ago: $3, $4 and $5
-- milliseconds, by outcome. The walk continues after `last` while all checked tasks were old. Dependencies of a live
-- task are kept.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), looked as (
  select id,
         created_at < clock_timestamp()
           - least($3::float8, $4::float8, $5::float8) * interval '1 millisecond' as old,
         finished_at < clock_timestamp() - interval '1 millisecond'
           * case state when 'FAILED' then $4::float8 when 'CANCELLED' then $5::float8 else $3::float8 end as done
    from tasks, guard where id > $7::bigint order by id limit $6
), gone as (
  delete from tasks t using looked l
   where t.id = l.id and l.done
     and not exists (select 1 from task_dependencies d join tasks w on w.id = d.task_id
                      where d.depends_on = t.id and w.finished_at is null)
  returning t.id, t.state
), waits as (
  delete from task_dependencies d using gone where d.task_id = gone.id
), totals as (
  update task_totals c set count = c.count - n.count
    from (select state, count(*) as count from gone group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded,
       (select count(*) = $6 and bool_and(old) from looked) as more, (select max(id) from looked) as last
