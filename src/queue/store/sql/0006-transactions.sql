-- Tasks from the application's own transaction: there when it commits, never there when it does not. The only
-- other writer of tasks beside the leader, and only of new ones (docs/decisions/0070-tasks-in-a-transaction.md).
alter table tasks add column attempt_timeout_ms integer check (attempt_timeout_ms > 0);
alter table tasks add column deadline timestamptz;
create index tasks_deadline on tasks (deadline) where finished_at is null and deadline is not null;

-- Named queues: what may run at once over all nodes, how fast, and whether at all. A queue without a row has no limits.
alter table tasks add column queue text not null default 'default';
create table task_queues (
  queue       text    primary key check (queue ~ '^[A-Za-z0-9_.-]{1,64}$'),
  paused      boolean not null default false,
  concurrency integer check (concurrency > 0),
  rate_count  integer check (rate_count > 0),
  rate_ms     float8  check (rate_ms > 0),
  check ((rate_count is null) = (rate_ms is null))
);

create schema if not exists hyperscale;

-- Runs with the rights of whoever made the tables, so that an application needs `usage` on the schema and nothing
-- else. Returns the task's id; of one that has the key already, that one's.
create function hyperscale.submit(
  executor        text,
  input           jsonb       default 'null',
  priority        integer     default 0,
  run_after       timestamptz default null,
  max_attempts    integer     default 3,
  idempotency_key text        default null,
  unique_key      text        default null,
  attempt_timeout interval    default null,
  timeout         interval    default null,
  queue           text        default 'default'
) returns bigint language plpgsql security definer as $$
declare
  made  bigint;
  same  record;
begin
  if executor is null or executor = '' or length(executor) > 128 then
    raise exception 'executor: a name of 1 to 128 characters' using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(coalesce(input, 'null')::text) > 1048576 then
    raise exception 'input: at most 1048576 bytes of JSON' using errcode = 'program_limit_exceeded';
  end if;
  if priority not between -32768 and 32767 or max_attempts not between 1 and 100 then
    raise exception 'priority is -32768 to 32767, max_attempts 1 to 100' using errcode = 'invalid_parameter_value';
  end if;
  if length(idempotency_key) not between 1 and 512 or length(unique_key) not between 1 and 512 then
    raise exception 'a key has 1 to 512 characters' using errcode = 'invalid_parameter_value';
  end if;
  if queue is null or queue !~ '^[A-Za-z0-9_.-]{1,64}$' then
    raise exception 'queue: letters, digits, dots, dashes and underscores' using errcode = 'invalid_parameter_value';
  end if;
  for try in 1..3 loop
    insert into tasks (id, executor, lane, ready, priority, max_attempts, input, idempotency_key, unique_key, run_after,
                       attempt_timeout_ms, deadline, queue, history)
    values (nextval('task_id_seq'), submit.executor,
            case when submit.queue = 'default' then '' else 'queue=' || submit.queue || E'\n' end || submit.executor,
            submit.run_after is null or submit.run_after <= clock_timestamp(), submit.priority, submit.max_attempts,
            coalesce(submit.input, 'null'), submit.idempotency_key, submit.unique_key, submit.run_after,
            ceil(extract(epoch from submit.attempt_timeout) * 1000)::integer, clock_timestamp() + submit.timeout, submit.queue,
            array[row('created', null, 'QUEUED', null, 1, (select epoch from cluster_leader), clock_timestamp(),
                      '{"by":"transaction"}'::jsonb)::task_event])
    on conflict do nothing returning id into made;
    if made is not null then
      perform pg_notify('hyperscale_queue', made::text);
      return made;
    end if;
    select t.id, t.executor, t.input into same from tasks t where t.idempotency_key = submit.idempotency_key;
    if found then
      if same.executor <> submit.executor or same.input <> coalesce(submit.input, 'null') then
        raise exception 'idempotency_key "%" belongs to task %, which was submitted with other content',
          submit.idempotency_key, same.id using errcode = 'unique_violation';
      end if;
      return same.id;
    end if;
    select t.id into same from tasks t where t.unique_key = submit.unique_key and t.finished_at is null;
    if found then
      return same.id;
    end if;
    -- Whoever had the unique key ended between the two statements.
  end loop;
  raise exception 'the task with this unique_key ends just now: submit again' using errcode = 'serialization_failure';
end
$$;

-- Nothing that a caller puts before the tables of the queue is taken for them.
do $$
begin
  execute format('alter function hyperscale.submit set search_path = %I, pg_temp', current_schema());
end
$$;
