-- Returns the metadata of a file and extends its retention.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), used as (
  update stored_files f set used_at = clock_timestamp() from guard where f.hash = $3 returning f.bytes, f.chunks
)
select (select count(*) from guard) as guarded, (select bytes from used) as bytes, (select chunks from used) as chunks
