-- QUEUED or RUNNING -> CANCELLED. A terminal task is left as it is.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), cancelled as (
  update tasks t
     set state = 'CANCELLED', finished_at = clock_timestamp(), lease_expires_at = null,
         error = jsonb_build_object('message', $4::text),
         history = t.history || row('cancelled', t.state, 'CANCELLED',
           case when t.state = 'RUNNING' then t.last_assigned_node end, t.attempt_id, $1::bigint, clock_timestamp(),
           jsonb_build_object('reason', $4::text))::task_event
    from guard
   where t.id = any ($3::bigint[]) and t.state in ('QUEUED', 'RUNNING')
  returning t.id, (t.history[cardinality(t.history)]).old_state, t.lease_id, t.state
), totals as (
  update task_totals c set count = c.count + n.count
    from (select state, count(*) as count from cancelled group by state) n where c.state = n.state
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'old_state', old_state, 'lease_id', lease_id))
                   from cancelled), '[]') as cancelled
