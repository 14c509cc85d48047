select * from tasks where id = any ($1::bigint[])
