-- Returns the results of dependencies by name, $2 bytes of JSON together for each task, the short ones first; and why
-- the others are missing.
with found as (
  select d.task_id, coalesce(d.name, d.depends_on::text) as name, d.depends_on, f.state, f.result,
         case when pg_column_size(f.result) > $2::int then pg_column_size(f.result) else octet_length(f.result::text) end as bytes
    from task_dependencies d left join tasks f on f.id = d.depends_on
   where d.task_id = any ($1::bigint[])
), summed as (
  select found.*, coalesce(state = 'SUCCEEDED', false) as succeeded,
         sum(bytes) filter (where state = 'SUCCEEDED') over (partition by task_id order by bytes, name) as bytes_to
    from found
), judged as (
  select summed.*, succeeded and coalesce(bytes_to, 0) <= $2::int as handed from summed
)
select task_id,
       coalesce(jsonb_object_agg(name, coalesce(result, 'null')) filter (where handed), '{}')::text as results,
       coalesce(jsonb_object_agg(name, case
         when succeeded then 'task ' || depends_on || ' has a result of ' || bytes || ' bytes, and the results handed to one task are '
                             || $2::int || ' bytes together at most'
         when state is null then 'task ' || depends_on || ' is not kept any more'
         else 'task ' || depends_on || ' is ' || state end) filter (where not handed), '{}') as missing
  from judged group by task_id
