-- QUEUED or RUNNING -> CANCELED. A terminal task is left as it is.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), cancelled as (
  update tasks t
     set state = 'CANCELED', finished_at = clock_timestamp(), lease_expires_at = null,
         error = jsonb_build_object('message', $4::text)
    from tasks o, guard
   where t.id = any ($3::bigint[]) and o.id = t.id and t.state in ('QUEUED', 'RUNNING')
  returning t.id, o.state as old_state, t.lease_id, t.last_assigned_node, t.attempt_id
), logged as (
  insert into task_events (task_id, event_type, old_state, new_state, node_id, attempt_id, epoch, details)
  select id, 'cancelled', old_state, 'CANCELED', case when old_state = 'RUNNING' then last_assigned_node end,
         attempt_id, $1, jsonb_build_object('reason', $4::text)
    from cancelled
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'old_state', old_state, 'lease_id', lease_id))
                   from cancelled), '[]') as cancelled
