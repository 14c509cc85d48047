-- Every task that did not succeed says why, also those that ended before this was a rule: the list of
-- dead letters goes by it.
update tasks set error = '{"message":"ended without a recorded reason"}'
 where finished_at is not null and state in ('FAILED', 'CANCELED') and error is null;

alter table tasks add constraint unsuccessful_has_reason
  check (state not in ('FAILED', 'CANCELED') or error is not null);
