-- Which of these leases stand: asked after a claim whose outcome is not plain.
select t.id from tasks t
  join unnest($1::bigint[], $2::uuid[]) as w(id, lease_id) on t.id = w.id and t.lease_id = w.lease_id
 where t.state = 'RUNNING'
