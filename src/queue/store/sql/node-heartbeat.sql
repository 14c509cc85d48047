with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), beaten as (
  update distributed_nodes n set heartbeat_at = clock_timestamp(), status = 'healthy'
    from unnest($3::text[], $4::uuid[]) as w(node_id, run), guard
   where n.node_id = w.node_id and n.run = w.run
  returning n.node_id
)
select (select count(*) from guard) as guarded, coalesce((select jsonb_agg(node_id) from beaten), '[]') as known
