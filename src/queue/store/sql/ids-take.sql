-- Starts of blocks of task ids (the sequence steps by a block). Gaps are harmless; the order of blocks
-- keeps FIFO over leaders.
select nextval('task_id_seq') as first from generate_series(1, $1::int)
