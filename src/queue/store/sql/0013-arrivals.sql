-- Tasks of transactions that no leader has announced yet: its log has a line for each, however long nobody led.
create table task_arrivals (task_id bigint primary key);

do $$
begin
  execute replace(pg_get_functiondef('hyperscale.submit'::regproc), 'perform pg_notify(',
                  'insert into task_arrivals values (made); perform pg_notify(');
end
$$;
