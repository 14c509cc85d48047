-- Dependencies are kept after they are settled: their results are handed to the dependent, by the name that it has
-- for each, or else by its id. Tasks that were submitted together as a graph are known by their key.
alter table task_dependencies add column name text;
alter table task_dependencies add column settled boolean not null default false;
create index task_dependencies_open on task_dependencies (depends_on) where not settled;

-- Whether there are results to hand over: asked with every task that is given out.
alter table tasks add column dependent boolean not null default false;
update tasks set dependent = true where id in (select task_id from task_dependencies);

create table task_graphs (
  idempotency_key text        primary key,
  content_hash    text        not null,
  names           text[]      not null,
  ids             bigint[]    not null,
  created_at      timestamptz not null default clock_timestamp()
);
