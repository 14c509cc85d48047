-- Acquires a vacant or expired leadership: one statement, one row lock, one winner. No row: another node leads.
update cluster_leader
   set epoch = epoch + 1, leader_id = $1, leader_run = $2, url = $3,
       acquired_at = clock_timestamp(), renewed_at = clock_timestamp(),
       expires_at = clock_timestamp() + $4::float8 * interval '1 millisecond'
 where leader_id is null or expires_at <= clock_timestamp()
returning epoch
