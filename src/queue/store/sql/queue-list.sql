select queue, paused, concurrency, rate_count, rate_ms from task_queues order by queue
