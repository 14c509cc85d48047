-- The distinct lanes and priorities with ready tasks, by skipping through the index.
with recursive walk as (
  (select lane, priority from tasks where finished_at is null and ready order by lane, priority desc limit 1)
  union all
  select n.lane, n.priority from walk w cross join lateral (
    (select t.lane, t.priority from tasks t
      where t.finished_at is null and t.ready and t.lane = w.lane and t.priority < w.priority
      order by t.lane, t.priority desc limit 1)
    union all
    (select t.lane, t.priority from tasks t
      where t.finished_at is null and t.ready and t.lane > w.lane
      order by t.lane, t.priority desc limit 1)
    order by lane, priority desc limit 1
  ) n
)
select lane, priority from walk
