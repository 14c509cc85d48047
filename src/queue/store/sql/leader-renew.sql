-- Renews only the same term, only while it is valid: an expired lease is never revived.
update cluster_leader
   set renewed_at = clock_timestamp(), expires_at = clock_timestamp() + $3::float8 * interval '1 millisecond'
 where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp()
returning epoch
