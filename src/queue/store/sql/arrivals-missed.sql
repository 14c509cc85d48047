-- Returns the next tasks inserted while no leader listened; none is returned twice.
delete from task_arrivals
 where task_id = any (array(select task_id from task_arrivals order by task_id limit $1::int))
returning task_id
