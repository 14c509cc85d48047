-- The distinct lanes with ready tasks, by skipping through the index.
with recursive walk as (
  (select lane from tasks where finished_at is null and ready order by lane limit 1)
  union all
  select (select t.lane from tasks t where t.finished_at is null and t.ready and t.lane > w.lane order by t.lane limit 1)
    from walk w where w.lane is not null
)
select lane from walk where lane is not null
