select state, count(*) as count from tasks group by state
