-- `hyperscale.submit` takes what clients can say of a task: also how long it waits after failures, and which tasks
-- must succeed first. Another list of parameters is another function, so the old one goes.
drop function hyperscale.submit;

-- The rules of core/queue/retry.ts; null when they hold.
create function hyperscale.backoff_problem(backoff jsonb) returns text language plpgsql immutable as $$
declare
  kind   text := coalesce(backoff ->> 'kind', 'exponential');
  lowest integer := case kind when 'exponential' then 1 else 0 end;
  field  text;
  number numeric;
begin
  if backoff is null then
    return null;
  end if;
  if jsonb_typeof(backoff) <> 'object' then
    return 'an object of kind, base, factor, cap and jitter';
  end if;
  if kind not in ('exponential', 'linear', 'constant') then
    return 'kind is one of exponential, linear, constant';
  end if;
  for field in select jsonb_object_keys(backoff - 'kind') loop
    if field not in ('base', 'factor', 'cap', 'jitter') then
      return 'there is no field ' || quote_ident(field);
    end if;
    if jsonb_typeof(backoff -> field) <> 'number' then
      return field || ' is a number';
    end if;
    number := (backoff ->> field)::numeric;
    if field in ('base', 'cap') and number not between 0 and 2000000 then
      return field || ' is 0 to 2000000 s';
    elsif field = 'factor' and number not between lowest and 1000 then
      return 'factor is ' || lowest || ' to 1000';
    elsif field = 'jitter' and number not between 0 and 1 then
      return 'jitter is 0 to 1';
    end if;
  end loop;
  if (backoff ->> 'cap')::numeric < (backoff ->> 'base')::numeric then
    return 'cap must not be below base';
  end if;
  return null;
end
$$;

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
  queue           text        default 'default',
  backoff         jsonb       default null,
  depends_on      bigint[]    default null
) returns bigint language plpgsql security definer as $$
declare
  made  bigint;
  same  record;
  waits bigint[] := array(select distinct d from unnest(depends_on) d where d is not null);
  wrong text;
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
  wrong := hyperscale.backoff_problem(backoff);
  if wrong is not null then
    raise exception 'backoff: %', wrong using errcode = 'invalid_parameter_value';
  end if;
  if cardinality(waits) > 1000 then
    raise exception 'depends_on: at most 1000 tasks' using errcode = 'program_limit_exceeded';
  end if;
  select string_agg(w::text, ', ') into wrong from (
    select w from unnest(waits) w where not exists (select 1 from tasks t where t.id = w) order by w limit 10) missing;
  if wrong is not null then
    raise exception 'depends_on names tasks that do not exist: %', wrong using errcode = 'foreign_key_violation';
  end if;
  for try in 1..3 loop
    insert into tasks (id, executor, lane, ready, priority, max_attempts, input, idempotency_key, unique_key, run_after,
                       attempt_timeout_ms, deadline, queue, backoff, waiting_on, dependent, history)
    values (nextval('task_id_seq'), submit.executor,
            case when submit.queue = 'default' then '' else 'queue=' || submit.queue || E'\n' end || submit.executor,
            cardinality(waits) = 0 and (submit.run_after is null or submit.run_after <= clock_timestamp()), submit.priority, submit.max_attempts,
            coalesce(submit.input, 'null'), submit.idempotency_key, submit.unique_key, submit.run_after,
            ceil(extract(epoch from submit.attempt_timeout) * 1000)::integer, clock_timestamp() + submit.timeout, submit.queue,
            submit.backoff, cardinality(waits), cardinality(waits) > 0,
            array[row('created', null, 'QUEUED', null, 1, (select epoch from cluster_leader), clock_timestamp(),
                      '{"by":"transaction"}'::jsonb)::task_event])
    on conflict do nothing returning id into made;
    if made is not null then
      insert into task_dependencies (task_id, depends_on) select made, w from unnest(waits) w;
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
