/**
 * Every number of the queue, named once. Durations are milliseconds; settings accept fractions of a second. The
 * relations between them are checked by `settings.ts` before anything starts.
 */

export const QUEUE_DEFAULTS = {
  /** Far below the task lease: a change of leader costs no worker its work. */
  leaderLeaseMs: 8_000,
  leaderRenewMs: 2_500,
  taskLeaseMs: 30_000,
  leaseCleanupMs: 10_000,
  pollIntervalMs: 5_000,
  maxParallel: 16,
  /** Tasks a worker leases beyond those it runs: as many as its pace justifies. */
  prefetch: "auto",
  heartbeatMs: 5_000,
  maxAttempts: 3,
  /** First retry waits up to this, then up to twice, four times … (full jitter). */
  retryBaseMs: 1_000,
  retryMaxMs: 300_000,
  /** A stopping node lets running tasks finish for this long, then returns them. */
  gracePeriodMs: 30_000,
  /** Finished tasks are kept this long: those that succeeded, failed, were cancelled. */
  retentionMs: 7 * 24 * 3_600_000,
  retentionFailedMs: 7 * 24 * 3_600_000,
  retentionCancelledMs: 7 * 24 * 3_600_000,
} as const;

export const QUEUE_LIMITS = {
  /** Input or result of one task, as JSON text. */
  payloadBytesMax: 1024 * 1024,
  /** Nesting of a payload: far above use, far below the database's parser stack. */
  payloadDepthMax: 200,
  /** One HTTP request. A batch of submits fits; a runaway client does not. */
  requestBytesMax: 8 * 1024 * 1024,
  /** Upper bound of one request between nodes: below `requestBytesMax`. */
  messageBytesMax: 6 * 1024 * 1024,
  /** Inputs in one answer to a worker's claim; one that was not kept in memory counts as the largest. */
  grantBytesMax: 16 * 1024 * 1024,
  /** One progress value or log line of an executor, as JSON text. */
  noteBytesMax: 64 * 1024,
  /** Notes of one worker waiting to be sent; of those beyond, only the number is sent. */
  notesMax: 10_000,
  /** One line of an executor's log. */
  logLineCharactersMax: 8_192,
  /** Lines kept of the log of one attempt: the last ones. */
  attemptLogLinesMax: 1_000,
  attemptLogBytesMax: 256 * 1024,
  /** One file of a task, and all of them together. As in the migration that creates their tables. */
  fileBytesMax: 64 * 1024 * 1024,
  fileChunkBytes: 1024 * 1024,
  taskFilesMax: 50,
  fileNameLengthMax: 200,
  /** Calls in one JSON-RPC batch, tasks in one submit. */
  batchCallsMax: 5_000,
  /** Answers to the calls of one JSON-RPC batch, as JSON text. */
  batchAnswerBytesMax: 16 * 1024 * 1024,
  keyLengthMax: 512,
  executorLengthMax: 128,
  /** Dependencies of one task: a join over a batch has many. */
  dependenciesMax: 1_000,
  /** Results of dependencies passed to one task, as JSON text: as much as an input. */
  dependencyBytesMax: 1024 * 1024,
  /** Tasks submitted together as a graph, in one statement; and their dependencies on each other. */
  graphTasksMax: 5_000,
  graphEdgesMax: 20_000,
  nodesListedMax: 100,
  maxAttemptsMax: 100,
  /** How often a task may snooze; each time adds to its history. */
  snoozesMax: 100,
  /** Missed ticks of one schedule that are submitted at once. */
  catchUpMax: 100,
  maxParallelMax: 10_000,
  /** 24 days: the range of a timer. */
  timeoutSecondsMax: 2_000_000,
  /** Longest delay of a task: 100 years. */
  delaySecondsMax: 3_155_760_000,
  /** Tasks leased ahead when that follows the pace of the worker. */
  prefetchAutoMax: 4_000,
  /** Ready tasks of one lane that the leader keeps in memory; the rest stays in the database. */
  laneTasksMax: 10_000,
  /** A lane is refilled when fewer than this are left and the database may hold more. */
  laneRefillBelow: 5_000,
  /** Inputs above this are fetched when the task is claimed instead of being kept in memory. */
  inlineInputBytesMax: 2_048,
  /** Tasks written by one statement of the group commit. */
  commitTasksMax: 1_000,
  /** Operations that may wait for the group commit; beyond it requests are rejected as overload. */
  pendingOperationsMax: 100_000,
  /** Leases that a worker lists as its own after an unanswered request; one with more lists none. */
  heldNamedMax: 20_000,
  /** Tasks per claim of a worker. */
  claimTasksMax: 1_000,
  /** Longest wait of a long poll for work. */
  claimWaitMsMax: 30_000,
  /** Task ids per step of the sequence, as in the first migration. */
  idBlock: 1_000,
  /** Finished tasks removed per statement. */
  pruneTasksMax: 2_000,
  listTasksMax: 1_000,
  /** Inputs and results above this are left out of lists; error messages are cut to it. */
  listedBytesMax: 512,
  /** Newest tasks covered by a text search. */
  searchedTasksMax: 10_000,
  eventsListedMax: 1_000,
  /** Events of one task; further notes are dropped, and transitions end long before. */
  historyEventsMax: 10_000,
  /** Lines of a log per answer. */
  logLinesListedMax: 1_000,
  /** Followers per node. */
  followersMax: 1_000,
  /** Longest wait of a write for the database before its caller gets an error. */
  writeWaitMs: 10_000,
} as const;

/** Missed heartbeats before a node is stale, then dead, then forgotten. */
export const HEARTBEATS_TO_STALE = 3;
export const HEARTBEATS_TO_DEAD = 6;
export const HEARTBEATS_TO_FORGET = 720;
