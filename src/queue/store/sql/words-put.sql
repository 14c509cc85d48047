-- Stores lines and progress of executions with a valid lease. Keeps the last $7 lines and $8 bytes of each attempt.
-- Existing lines come from an earlier attempt to send them. Returns the numbers of the accepted lines.
with guard as materialized (
  select epoch from cluster_leader
   where epoch = $1 and leader_run = $2 and expires_at > clock_timestamp() for share
), said as (
  select t.id as task_id, t.attempt_id, s.line, s.text, s.place, b.line as line_before, b.bytes_to as bytes_before
    from unnest($3::bigint[], $4::uuid[], $5::int[], $6::text[]) with ordinality as s(id, lease_id, line, text, place)
    join tasks t on t.id = s.id and t.lease_id = s.lease_id and t.state = 'RUNNING'
   cross join guard
    left join lateral (
      select l.line, l.bytes_to from task_log_lines l
       where l.task_id = t.id and l.attempt_id = t.attempt_id order by l.line desc limit 1
    ) b on true
   where s.line is null or b.line is null or s.line > b.line
), numbered as (
  select task_id, attempt_id, place, text,
         coalesce(line, coalesce(line_before, 0) + row_number() over spoken)::int as line,
         coalesce(bytes_before, 0) + sum(octet_length(text)) over spoken as bytes_to
    from said window spoken as (partition by task_id, attempt_id order by place)
), judged as (
  select n.*, max(line) over attempt - $7::int as line_over, max(bytes_to) over attempt - $8::bigint as bytes_over
    from numbered n window attempt as (partition by task_id, attempt_id)
), kept as (
  insert into task_log_lines (task_id, attempt_id, line, bytes_to, text)
  select task_id, attempt_id, line, bytes_to, text from judged
   where line > line_over and bytes_to - octet_length(text) >= bytes_over
  on conflict do nothing
), trimmed as (
  delete from task_log_lines l
   using (select distinct task_id, attempt_id, line_over, bytes_over from judged) j
   where l.task_id = j.task_id and l.attempt_id = j.attempt_id 
     and (l.line <= j.line_over or l.bytes_to - octet_length(l.text) < j.bytes_over)
), progress as (
  insert into task_progress (task_id, attempt_id, value)
  select t.id, t.attempt_id, p.value::jsonb
    from unnest($9::bigint[], $10::uuid[], $11::text[]) as p(id, lease_id, value)
    join tasks t on t.id = p.id and t.lease_id = p.lease_id and t.state = 'RUNNING'
   cross join guard
  on conflict (task_id, attempt_id) do update set value = excluded.value, at = excluded.at
)
select (select count(*) from guard) as guarded,
       coalesce((select jsonb_agg(jsonb_build_object('place', place, 'line', line)) from numbered), '[]') as taken
