select content_hash, names, ids from task_graphs where idempotency_key = $1
