-- Returns the inputs of the backoff of failed tasks. Forgiven attempts are not counted.
select id, queue, backoff, attempt_id - attempts_forgiven as failures from tasks where id = any ($1::bigint[])
