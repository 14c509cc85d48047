-- A clean stop: the row and its epoch stay, the leadership is vacant at once.
update cluster_leader
   set leader_id = null, leader_run = null, url = null, acquired_at = null, renewed_at = null,
       expires_at = '-infinity'
 where epoch = $1 and leader_run = $2
