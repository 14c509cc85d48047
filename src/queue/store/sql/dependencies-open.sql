select count(*) as count from (select 1 from task_dependencies limit 1) one
