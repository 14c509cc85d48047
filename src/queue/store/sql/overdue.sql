-- Tasks whose time limit has passed.
select id from tasks where finished_at is null and deadline is not null and deadline <= clock_timestamp()
 order by deadline limit $1
