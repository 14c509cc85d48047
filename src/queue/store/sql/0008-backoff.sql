-- How long failed tasks wait: said by a task, or by its queue for all of its tasks. Of one that asked to be run
-- later, how often.
alter table tasks add column backoff jsonb;
alter table tasks add column snoozes integer not null default 0;
alter table task_queues add column backoff jsonb;
