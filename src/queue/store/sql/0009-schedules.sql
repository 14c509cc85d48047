-- Schedules by the clocks of a time zone, that can be paused, and say what happens to ticks that were missed.
alter table task_schedules add column time_zone text not null default 'UTC';
alter table task_schedules add column paused boolean not null default false;
alter table task_schedules add column catch_up text not null default 'last' check (catch_up in ('none', 'last', 'all'));
alter table task_schedules add column catch_up_max integer not null default 100 check (catch_up_max > 0);
