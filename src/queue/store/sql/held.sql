-- Returns which of these leases are valid, with their execution keys: used after a claim with unknown outcome.
select t.lease_id, execution_key(t.id, t.input) as key from tasks t
  join unnest($1::bigint[], $2::uuid[]) as w(id, lease_id) on t.id = w.id and t.lease_id = w.lease_id
 where t.state = 'RUNNING'
