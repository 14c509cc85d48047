-- Times that no leader can calculate with, such as 'infinity', would stop every delayed task.
update tasks set run_after = least(greatest(run_after, '1970-01-01 00:00Z'), '9000-01-01 00:00Z')
 where run_after not between '1970-01-01 00:00Z' and '9000-01-01 00:00Z';
update tasks set deadline = least(greatest(deadline, '1970-01-01 00:00Z'), '9000-01-01 00:00Z')
 where deadline not between '1970-01-01 00:00Z' and '9000-01-01 00:00Z';
alter table tasks add constraint run_after_is_usable
  check (run_after between '1970-01-01 00:00Z' and '9000-01-01 00:00Z');
alter table tasks add constraint deadline_is_usable
  check (deadline between '1970-01-01 00:00Z' and '9000-01-01 00:00Z');
