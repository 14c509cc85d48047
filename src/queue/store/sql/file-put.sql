-- Completes a file: it exists from now on, if its content matches its name.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), content as (
  select count(*)::int as chunks, coalesce(sum(octet_length(data)), 0) as bytes,
         encode(sha256(coalesce(string_agg(data, '' order by chunk), '')), 'hex') as hash
    from stored_file_chunks where hash = $3 and chunk < $4::int
), put as (
  insert into stored_files (hash, bytes, chunks)
  select $3, c.bytes, c.chunks from content c, guard where c.hash = $3 and c.chunks = $4::int
  on conflict (hash) do update set used_at = clock_timestamp()
  returning bytes
)
select (select count(*) from guard) as guarded, (select bytes from put) as bytes
