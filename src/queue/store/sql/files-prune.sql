-- Removes files unused for long that belong to no stored or live task and no schedule; chunks of files that were
-- never completed; and the keys of graphs without stored tasks.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), orphans as (
  delete from task_files o using guard
   where not exists (select 1 from tasks t where t.id = o.task_id)
), gone as (
  delete from stored_files f using guard
   where f.used_at < clock_timestamp() - $3::float8 * interval '1 millisecond'
     and not exists (select 1 from task_schedules s where position(f.hash in s.template::text) > 0)
     and not exists (select 1 from tasks t where t.finished_at is null and t.executor = 'loadtest'
                      and (t.input ->> 'bundle' = f.hash
                           or t.input -> 'files' @> jsonb_build_array(jsonb_build_object('hash', f.hash))))
     and not exists (select 1 from task_files o where o.hash = f.hash)
  returning f.hash
), chunks as (
  delete from stored_file_chunks c using guard
   where c.hash in (select hash from gone)
      or (c.added_at < clock_timestamp() - $3::float8 * interval '1 millisecond'
          and not exists (select 1 from stored_files f where f.hash = c.hash))
), graphs as (
  delete from task_graphs g using guard where not exists (select 1 from tasks t where t.id = any (g.ids))
)
select (select count(*) from guard) as guarded, (select count(*) from gone) as gone
