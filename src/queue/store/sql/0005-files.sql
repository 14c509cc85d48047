-- Files that belong to tasks: what load tests run, and what executors leave behind. Kept once by content, in
-- chunks, so that no row and no message is large. A file is whole when it has its row here.
create table stored_files (
  hash    text        primary key check (hash ~ '^[0-9a-f]{64}$'),
  bytes   bigint      not null check (bytes between 0 and 67108864),
  chunks  integer     not null,
  used_at timestamptz not null default clock_timestamp()
);

create table stored_file_chunks (
  hash     text        not null,
  chunk    integer     not null check (chunk between 0 and 63),
  data     bytea       not null check (octet_length(data) <= 1048576),
  added_at timestamptz not null default clock_timestamp(),
  primary key (hash, chunk)
);

create table task_files (
  task_id    bigint  not null,
  name       text    not null,
  attempt_id integer not null,
  hash       text    not null references stored_files,
  media_type text    not null,
  primary key (task_id, name)
);
create index task_files_of_hash on task_files (hash);
