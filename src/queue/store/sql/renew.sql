-- Extends valid leases; those not returned are lost to their holder.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), renewed as (
  update tasks t set lease_expires_at = clock_timestamp() + $5::float8 * interval '1 millisecond'
    from unnest($3::bigint[], $4::uuid[]) as w(id, lease_id), guard
   where t.id = w.id and t.lease_id = w.lease_id and t.state = 'RUNNING'
  returning t.id
)
select (select count(*) from guard) as guarded, coalesce((select jsonb_agg(id) from renewed), '[]') as renewed
