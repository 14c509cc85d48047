-- Stores first final results under current leases, releases the leases and writes the events. A lease is valid until
-- the leader revokes it.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), reported as (
  select * from unnest(
    $3::bigint[], $4::uuid[], $5::task_state[], $6::task_event_type[], $7::text[], $8::text[], $9::float8[],
    $10::boolean[]
  ) as r(id, lease_id, state, event_type, result, error, elapsed_ms, start_noted)
), done as (
  update tasks t
     set state = r.state, result = r.result::jsonb, error = r.error::jsonb, lease_expires_at = null,
         started_at = greatest(t.started_at, clock_timestamp() - r.elapsed_ms * interval '1 millisecond'),
         finished_at = clock_timestamp(),
         history = t.history || case
           when r.start_noted then array[
             row(r.event_type, 'RUNNING', r.state, t.last_assigned_node, t.attempt_id, $1::bigint,
                 clock_timestamp(), r.error::jsonb)::task_event]
           else array[
             row('started', 'RUNNING', 'RUNNING', t.last_assigned_node, t.attempt_id, $1::bigint,
                 greatest(t.started_at, clock_timestamp() - r.elapsed_ms * interval '1 millisecond'), null)::task_event,
             row(r.event_type, 'RUNNING', r.state, t.last_assigned_node, t.attempt_id, $1::bigint,
                 clock_timestamp(), r.error::jsonb)::task_event]
         end
    from reported r, guard
   where t.id = r.id and t.lease_id = r.lease_id and t.state = 'RUNNING'
  returning t.state
), totals as (
  update task_totals c set count = c.count + n.count
    from (select state, count(*) as count from done group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded, (select count(*) from done) as changed
