-- Stores first terminal results under valid leases, releases the leases and writes the events.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), reported as (
  select * from unnest(
    $3::bigint[], $4::uuid[], $5::boolean[], $6::text[], $7::text[], $8::float8[], $9::boolean[]
  ) as r(id, lease_id, succeeded, result, error, elapsed_ms, start_noted)
), done as (
  update tasks t
     set state = case when r.succeeded then 'SUCCEEDED'::task_state else 'FAILED'::task_state end,
         result = r.result::jsonb, error = r.error::jsonb, lease_expires_at = null,
         started_at = greatest(t.started_at, clock_timestamp() - r.elapsed_ms * interval '1 millisecond'),
         finished_at = clock_timestamp()
    from reported r, guard
   where t.id = r.id and t.lease_id = r.lease_id and t.state = 'RUNNING' and t.lease_expires_at > clock_timestamp()
  returning t.id, t.attempt_id, t.last_assigned_node, t.state, t.started_at, r.error, r.start_noted
), logged as (
  insert into task_events (task_id, event_type, old_state, new_state, node_id, attempt_id, epoch, "timestamp", details)
  select d.id, e.event_type, 'RUNNING', e.new_state, d.last_assigned_node, d.attempt_id, $1, e.at, e.details
    from done d
   cross join lateral (
     select 'started'::task_event_type as event_type, 'RUNNING'::task_state as new_state, d.started_at as at,
            null::jsonb as details
      where not d.start_noted
     union all
     select case when d.state = 'SUCCEEDED' then 'completed'::task_event_type else 'failed'::task_event_type end,
            d.state, clock_timestamp(), d.error::jsonb
   ) e
)
select (select count(*) from guard) as guarded, (select count(*) from done) as changed
