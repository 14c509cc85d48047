-- What executions say while they run, by attempt: the last lines of their log, and how far they are. Both go with
-- their task.
create table task_log_lines (
  task_id    bigint      not null references tasks on delete cascade,
  attempt_id integer     not null,
  line       integer     not null check (line >= 1),   -- counted by the worker: a repeat lands once, a gap shows
  bytes_to   bigint      not null,                     -- of the attempt's lines up to this one
  at         timestamptz not null default clock_timestamp(),
  text       text        not null,
  primary key (task_id, attempt_id, line)
);

create table task_progress (
  task_id    bigint      not null references tasks on delete cascade,
  attempt_id integer     not null,
  at         timestamptz not null default clock_timestamp(),
  value      jsonb       not null,
  primary key (task_id, attempt_id)
) with (fillfactor = 50);
