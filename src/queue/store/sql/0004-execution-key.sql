-- The key of an execution: the same for every attempt of a task, made here so that the one on record is the one
-- that executors get. The text of a jsonb value is canonical: equal inputs give equal keys.
create function execution_key(task_id bigint, input jsonb) returns text
  language sql stable as
  $$ select encode(sha256(convert_to(task_id || ':' || input::text, 'UTF8')), 'hex') $$;

-- One record per attempt.
create or replace view execution_idempotency as
  select e.task_id, e.attempt_id,
         execution_key(t.id, t.input) as idempotency_key,
         case when o.event_type = 'completed' then t.result end as result,
         case when o.event_type = 'completed' then 'completed'
              when o.event_type is null then 'pending'
              else 'failed' end as status,
         e."timestamp" as created_at
    from task_events e
    join tasks t on t.id = e.task_id
    left join lateral (
      select x.event_type from task_events x
       where x.task_id = e.task_id and x.attempt_id = e.attempt_id and x.event_id > e.event_id
         and x.event_type in ('completed', 'failed', 'reassigned', 'cancelled')
       order by x.event_id limit 1
    ) o on true
   where e.event_type = 'assigned';
