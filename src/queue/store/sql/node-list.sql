select *, extract(epoch from clock_timestamp() - heartbeat_at) * 1000 as heartbeat_age_ms
  from distributed_nodes order by node_id
