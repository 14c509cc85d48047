-- Notes that executions began, for those whose lease still stands.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), logged as (
  insert into task_events (task_id, event_type, old_state, new_state, node_id, attempt_id, epoch)
  select t.id, 'started', 'RUNNING', 'RUNNING', t.last_assigned_node, t.attempt_id, $1
    from unnest($3::bigint[], $4::uuid[]) as w(id, lease_id)
    join tasks t on t.id = w.id and t.lease_id = w.lease_id and t.state = 'RUNNING', guard
  returning task_id
)
select (select count(*) from guard) as guarded, (select count(*) from logged) as changed
