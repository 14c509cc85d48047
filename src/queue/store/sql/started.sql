-- Records the start of executions with a valid lease.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), noted as (
  update tasks t
     set history = t.history || row('started', 'RUNNING', 'RUNNING', t.last_assigned_node, t.attempt_id, $1::bigint,
                                    clock_timestamp(), null)::task_event
    from unnest($3::bigint[], $4::uuid[]) as w(id, lease_id), guard
   where t.id = w.id and t.lease_id = w.lease_id and t.state = 'RUNNING'
  returning t.id
)
select (select count(*) from guard) as guarded, (select count(*) from noted) as changed
