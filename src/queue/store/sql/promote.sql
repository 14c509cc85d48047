-- Makes due tasks ready.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), due as (
  select id from tasks, guard
   where finished_at is null and not ready and waiting_on = 0 and run_after <= clock_timestamp()
   order by run_after limit $3
), promoted as (
  update tasks t set ready = true from due where t.id = due.id and t.state = 'QUEUED'
  returning t.id, t.lane, t.executor, t.queue, t.priority, t.attempt_id, t.attempt_timeout_ms, t.dependent, t.placement_constraints, t.input, t.state, t.ready
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'lane', lane, 'executor', executor, 'queue', queue, 'priority', priority, 'attempt_id', attempt_id, 'attempt_timeout_ms', attempt_timeout_ms, 'dependent', dependent,
         'placement_constraints', placement_constraints, 'input', input)) from promoted), '[]') as ready,
       (select extract(epoch from min(run_after) - clock_timestamp()) * 1000 from tasks
         where finished_at is null and not ready and waiting_on = 0
           and id not in (select id from due)) as next_ms
