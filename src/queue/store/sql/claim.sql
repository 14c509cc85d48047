-- Grants leases: takes tasks from the queue and marks them RUNNING in one statement, only if still QUEUED with the
-- attempt that the leader knows. Returns the execution keys of the granted ones.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), wanted as (
  select * from unnest($3::bigint[], $4::uuid[], $5::text[], $7::int[]) as w(id, lease_id, node_id, attempt_id)
), claimed as (
  update tasks t
     set state = 'RUNNING', lease_id = w.lease_id, last_assigned_node = w.node_id,
         lease_expires_at = clock_timestamp() + $6::float8 * interval '1 millisecond',
         started_at = clock_timestamp(),
         history = t.history || row('assigned', 'QUEUED', 'RUNNING', w.node_id, t.attempt_id, $1::bigint,
                                    clock_timestamp(), null)::task_event
    from wanted w, guard
   where t.id = w.id and t.state = 'QUEUED' and t.ready and t.attempt_id = w.attempt_id
  returning t.id, execution_key(t.id, t.input) as key
)
select (select count(*) from guard) as guarded,
       (select string_agg(id::text, ',') from claimed) as ids, (select string_agg(key, ',') from claimed) as keys
