-- Walks old tasks by id, a bounded number at a time, and removes those that finished long ago.
-- $5 is where the walk goes on; it has come to the end when fewer than $4 were looked at.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), looked as (
  select id, state, finished_at from tasks, guard
   where id > $5::bigint and created_at < clock_timestamp() - $3::float8 * interval '1 millisecond'
   order by id limit $4
), gone as (
  delete from tasks t using looked l
   where t.id = l.id and l.finished_at < clock_timestamp() - $3::float8 * interval '1 millisecond'
  returning t.state
)
select (select count(*) from guard) as guarded, (select count(*) from looked) as looked,
       (select max(id) from looked) as last,
       coalesce((select jsonb_object_agg(state, n) from (select state, count(*) as n from gone group by state) s), '{}') as gone
