select queue, paused, concurrency, rate_count, rate_ms, backoff from task_queues order by queue
