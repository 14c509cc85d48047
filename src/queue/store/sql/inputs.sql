select id, input::text as input from tasks where id = any ($1::bigint[])
