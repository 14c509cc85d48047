-- Returns which of these ids no task has.
select w.id from unnest($1::bigint[]) as w(id) where not exists (select 1 from tasks t where t.id = w.id) order by w.id limit $2
