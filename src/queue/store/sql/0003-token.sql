-- One token for all nodes that are given none: clients of each read it from a file that only its user can.
create table cluster_token (
  singleton boolean primary key default true check (singleton),
  token     text    not null check (length(token) >= 16)
);
