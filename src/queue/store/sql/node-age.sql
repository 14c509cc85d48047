-- Writes the status that a node's heartbeat age gives it; returns those that changed.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), aged as (
  update distributed_nodes n set status = x.status
    from distributed_nodes o
   cross join lateral (
     select case when o.heartbeat_at > clock_timestamp() - $3::float8 * interval '1 millisecond' then 'healthy'
                 when o.heartbeat_at > clock_timestamp() - $4::float8 * interval '1 millisecond' then 'stale'
                 else 'dead' end as status
   ) x, guard
   where n.node_id = o.node_id and n.status <> x.status
  returning n.node_id, o.status as old_status, n.status
), forgotten as (
  delete from distributed_nodes n using guard
   where n.heartbeat_at < clock_timestamp() - $5::float8 * interval '1 millisecond'
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('node_id', node_id, 'old_status', old_status, 'status', status))
                   from aged), '[]') as aged
