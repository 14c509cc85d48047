with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), before as (
  select run from distributed_nodes where node_id = $3
), registered as (
  insert into distributed_nodes (node_id, run, role, url, executor_types, capabilities, max_parallel)
  select $3, $4::uuid, $5, $6, $7::text[], $8::jsonb, $9::int from guard
  on conflict (node_id) do update
     set run = excluded.run, role = excluded.role, url = excluded.url, executor_types = excluded.executor_types,
         capabilities = excluded.capabilities, max_parallel = excluded.max_parallel, status = 'healthy',
         heartbeat_at = clock_timestamp(),
         registered_at = case when distributed_nodes.run = excluded.run then distributed_nodes.registered_at
                              else clock_timestamp() end
  returning node_id
)
select (select count(*) from guard) as guarded, (select run from before) as old_run
