-- Returns the state of tasks whose report or release was rejected, to distinguish a repeat from a late one.
select id, state, lease_id, attempt_id, finished_at is not null as finished from tasks where id = any ($1::bigint[])
