-- Removes a bounded number of tasks that finished long ago, with their events.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), old as (
  select id from tasks, guard
   where finished_at < clock_timestamp() - $3::float8 * interval '1 millisecond'
   order by finished_at limit $4
), events as (
  delete from task_events e using old where e.task_id = old.id
), gone as (
  delete from tasks t using old where t.id = old.id returning t.state
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_object_agg(state, n) from (select state, count(*) as n from gone group by state) s), '{}') as gone
