select count(*) as count from (select 1 from task_dependencies where not settled limit 1) one
