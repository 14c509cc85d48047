-- Returns every lease, valid or expired: read once by a new leader.
select id, executor, lane, queue, priority, attempt_id, placement_constraints, lease_id, last_assigned_node as node_id,
       extract(epoch from lease_expires_at - clock_timestamp()) * 1000 as expires_in_ms
  from tasks where finished_at is null and ready and state = 'RUNNING'
