-- The functions see objects of PostgreSQL and of this schema, in which only the owner of the queue may create any.
alter function hyperscale.submit set search_path = hyperscale, pg_temp;
alter function hyperscale.backoff_problem set search_path = hyperscale, pg_temp;

-- The same keys, from operators and functions whose argument types match exactly: nothing else can be preferred to
-- them, whatever search path the reader of `execution_idempotency` has. A search path of its own would cost the
-- inlining of this function.
create or replace function execution_key(task_id bigint, input jsonb) returns text
  language sql stable as
  $$ select pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(task_id::text || (':'::text || input::text),
       'UTF8'::name)), 'hex'::text) $$;
