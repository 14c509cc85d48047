-- Writes events that change no state: late results and rejected renewals.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), noted as (
  update tasks t
     set history = t.history || row($4::task_event_type, t.state, t.state, w.node_id, w.attempt_id, $1::bigint,
                                    clock_timestamp(), w.details::jsonb)::task_event
    from unnest($3::bigint[], $5::text[], $6::int[], $7::text[]) as w(id, node_id, attempt_id, details), guard
   where t.id = w.id and cardinality(t.history) < 10000
  returning t.id
)
select (select count(*) from guard) as guarded, (select count(*) from noted) as changed
