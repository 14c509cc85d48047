select leader_id as node_id, leader_run as run, url, epoch, expires_at,
       expires_at > clock_timestamp() as alive
  from cluster_leader
