-- Tasks that were cancelled because one of these did not succeed.
select distinct d.task_id as id
  from task_dependencies d join tasks t on t.id = d.task_id
 where d.depends_on = any ($1::bigint[]) and t.state = 'CANCELLED'
   and (t.history[cardinality(t.history)]).details ->> 'reason' = 'dependency'
 order by id limit $2
