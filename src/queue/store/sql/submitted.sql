-- Returns the outcome of a batch that was not inserted completely: its own rows, and those with its keys.
select t.id, t.idempotency_key, t.content_hash, t.unique_key, t.finished_at is not null as finished
  from tasks t
 where t.id = any ($1::bigint[])
    or t.idempotency_key = any ($2::text[])
    or (t.unique_key = any ($3::text[]) and t.finished_at is null)
