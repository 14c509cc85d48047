-- Tasks that had finished by a moment: the part of the counts that takes a look at every row.
select state, count(*) as count from tasks where finished_at <= $1::timestamptz group by state
