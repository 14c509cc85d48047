-- The token that all nodes of this database share when none is given: the first one offered.
with offered as (
  insert into cluster_token (token) values ($1) on conflict do nothing returning token
)
select token from offered union all select token from cluster_token limit 1
