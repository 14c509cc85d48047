-- Events that change no state: late results and refused renewals.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), logged as (
  insert into task_events (task_id, event_type, old_state, new_state, node_id, attempt_id, epoch, details)
  select t.id, $4::task_event_type, t.state, t.state, w.node_id, w.attempt_id, $1, w.details::jsonb
    from unnest($3::bigint[], $5::text[], $6::int[], $7::text[]) as w(id, node_id, attempt_id, details)
    join tasks t on t.id = w.id, guard
  returning task_id
)
select (select count(*) from guard) as guarded, (select count(*) from logged) as changed
