-- Only for a database that one process can open at a time: its former leader is dead.
update cluster_leader
   set leader_id = null, leader_run = null, url = null, acquired_at = null, renewed_at = null,
       expires_at = '-infinity'
