-- Stores a chunk of a file, as base64. An existing one is the same: its file is named by its content.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), put as (
  insert into stored_file_chunks (hash, chunk, data)
  select $3, $4::int, decode($5, 'base64') from guard
  on conflict (hash, chunk) do update set data = excluded.data, added_at = clock_timestamp()
    where not exists (select 1 from stored_files f where f.hash = $3)
)
select (select count(*) from guard) as guarded
