-- What decides how long failed tasks wait. Attempts that were forgiven are not counted.
select id, queue, backoff, attempt_id - attempts_forgiven as failures from tasks where id = any ($1::bigint[])
