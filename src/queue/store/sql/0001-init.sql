-- The queue's tables. One truth per fact: lease and history live on the task's row; `task_leases`,
-- `task_events` and `execution_idempotency` are views of it (docs/decisions/0026-one-row-per-task.md).
--
-- The claim of a task (QUEUED -> RUNNING) touches no indexed column, so PostgreSQL writes it as a
-- heap-only update on the same page: that is why no index mentions `state` or the lease.

create type task_state as enum ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED');

create type task_event_type as enum (
  'created', 'assigned', 'started', 'completed', 'failed', 'reassigned', 'cancelled',
  'late_result', 'lease_renewal_failed', 'requeued'
);

-- A task's history lives on its row: the update that moves a task appends the event, so a
-- transition without its event (or the other way round) cannot exist, and costs no second write.
create type task_event as (
  event_type  task_event_type,
  old_state   task_state,
  new_state   task_state,
  node_id     text,
  attempt_id  integer,
  epoch       bigint,
  at          timestamptz,
  details     jsonb
);

-- Leaders take ids in blocks of the increment, so a submit whose commit was lost in transit is repeated with the
-- same ids and lands once.
create sequence task_id_seq as bigint increment by 1000;

create table tasks (
  id                    bigint      primary key,
  executor              text        not null check (executor <> ''),
  lane                  text        not null,          -- executor + placement: tasks that may run on the same nodes
  state                 task_state  not null default 'QUEUED',
  ready                 boolean     not null default true,  -- may be assigned: due, and waiting on no other task
  priority              integer     not null default 0,
  attempt_id            integer     not null default 1 check (attempt_id >= 1),
  max_attempts          integer     not null check (max_attempts >= 1),
  attempts_forgiven     integer     not null default 0,  -- returned by a stopping node: not the task's fault
  waiting_on            integer     not null default 0 check (waiting_on >= 0),
  run_after             timestamptz,
  input                 jsonb       not null,
  result                jsonb,
  error                 jsonb,
  idempotency_key       text,
  content_hash          text,
  unique_key            text,
  schedule_id           text,
  placement_constraints jsonb,
  lease_id              uuid,                           -- kept when finished: the lease that won
  lease_expires_at      timestamptz,
  last_assigned_node    text,
  created_at            timestamptz not null default clock_timestamp(),
  started_at            timestamptz,
  finished_at           timestamptz,
  history               task_event[] not null,
  constraint finished_is_terminal
    check ((state in ('SUCCEEDED', 'FAILED', 'CANCELED')) = (finished_at is not null)),
  constraint running_is_leased
    check ((state = 'RUNNING') = (lease_expires_at is not null) and (state <> 'RUNNING' or lease_id is not null)),
  constraint only_ready_tasks_run check (state <> 'RUNNING' or (ready and waiting_on = 0))
) with (
  fillfactor = 40,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

create index tasks_ready on tasks (lane, priority desc, id) where finished_at is null and ready;
create index tasks_waiting on tasks (run_after) where finished_at is null and not ready;
create index tasks_unsuccessful on tasks (id) where finished_at is not null and error is not null;
create unique index tasks_idempotency on tasks (idempotency_key) where idempotency_key is not null;
create unique index tasks_unique on tasks (unique_key) where unique_key is not null and finished_at is null;

-- Finished tasks by state, kept by the statements that finish and remove them: counting them would
-- take a look at every row.
create table task_totals (
  state task_state primary key,
  count bigint     not null default 0 check (count >= 0)
) with (fillfactor = 10);
insert into task_totals (state) values ('SUCCEEDED'), ('FAILED'), ('CANCELED');

create table task_dependencies (
  task_id    bigint not null,
  depends_on bigint not null,
  primary key (depends_on, task_id)
);
create index task_dependencies_of on task_dependencies (task_id);

create view task_events as
  select t.id as task_id, e.ordinality as event_id, e.event_type, e.old_state, e.new_state, e.node_id,
         e.attempt_id, e.epoch, e.at as "timestamp", e.details
    from tasks t
   cross join lateral unnest(t.history) with ordinality
     as e(event_type, old_state, new_state, node_id, attempt_id, epoch, at, details, ordinality);

-- One row for ever: two leaders cannot both insert, and the epoch never restarts.
create table cluster_leader (
  singleton   boolean     primary key default true check (singleton),
  epoch       bigint      not null default 0 check (epoch >= 0),
  leader_id   text        check (leader_id <> ''),
  leader_run  uuid,
  url         text,
  acquired_at timestamptz,
  renewed_at  timestamptz,
  expires_at  timestamptz not null default '-infinity',
  check ((leader_id is null) = (leader_run is null))
) with (fillfactor = 50);
insert into cluster_leader (singleton) values (true);

create table distributed_nodes (
  node_id        text        primary key check (node_id <> ''),
  run            uuid        not null,
  role           text        not null,
  url            text,
  executor_types text[]      not null default '{}',
  capabilities   jsonb       not null default '{}',
  max_parallel   integer     not null,
  status         text        not null default 'healthy' check (status in ('healthy', 'stale', 'dead')),
  heartbeat_at   timestamptz not null default clock_timestamp(),
  registered_at  timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

create table task_schedules (
  schedule_id text        primary key check (schedule_id <> ''),
  cron        text        not null,
  template    jsonb       not null,
  next_tick   timestamptz not null,
  last_tick   timestamptz,
  last_task   bigint,
  created_at  timestamptz not null default clock_timestamp()
);

create view task_leases as
  select id as task_id, last_assigned_node as node_id, lease_id as lease_token,
         started_at as acquired_at, lease_expires_at as expires_at
    from tasks
   where finished_at is null and state = 'RUNNING';

-- One record per attempt. The key names the task, whose input never changes: the same for every attempt.
create view execution_idempotency as
  select e.task_id, e.attempt_id,
         'task-' || e.task_id as idempotency_key,
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
