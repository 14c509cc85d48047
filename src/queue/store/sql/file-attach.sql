-- Attaches a file to a task with a valid lease, within the limits of $8 files and $9 bytes per task.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), task as (
  select t.id, t.attempt_id from tasks t, guard
   where t.id = $3::bigint and t.lease_id = $4::uuid and t.state = 'RUNNING' for update of t
), others as (
  select count(*) as count, coalesce(sum(f.bytes), 0) as bytes
    from task_files o join stored_files f on f.hash = o.hash where o.task_id = $3::bigint and o.name <> $5
), attached as (
  insert into task_files (task_id, name, attempt_id, hash, media_type)
  select t.id, $5, t.attempt_id, f.hash, $7 from task t, stored_files f, others o
   where f.hash = $6 and o.count < $8::int and o.bytes + f.bytes <= $9::bigint
  on conflict (task_id, name) do update
     set attempt_id = excluded.attempt_id, hash = excluded.hash, media_type = excluded.media_type
  returning 1
)
select (select count(*) from guard) as guarded, (select count(*) from task) as leased, (select count(*) from attached) as changed
