with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), removed as (
  delete from distributed_nodes n using guard where n.node_id = $3 and ($4::uuid is null or n.run = $4)
  returning n.node_id
)
select (select count(*) from guard) as guarded, (select count(*) from removed) as changed
