/** Rules of a worker that tests can break one at a time. */

export interface WorkerRules {
  /** Refuses orders of a view below the highest promised one. (AD-10) */
  readonly viewFenced: boolean;
  /** Executes nothing of a view before its promise is on disk. */
  readonly promiseDurable: boolean;
  /** Sends the last metrics of finished shares to each new leader. */
  readonly figuresKept: boolean;
  /** Resends events that were in flight when the connection broke. */
  readonly eventsRepeated: boolean;
  /** Restarts event numbers at zero for a new leader. */
  readonly eventsRenumbered: boolean;
  /** Replaces only unsent frames. */
  readonly sentFramesStay: boolean;
  /** Reports lost cores to the leader. */
  readonly lossTold: boolean;
  /** Stops load when no manager can be reached to stop it. (FAIL-F4) */
  readonly isolationEndsLoad: boolean;
  /** Kills cores that do not stop when asked. */
  readonly isolatedKilled: boolean;
  /** Sends heartbeats to every manager, not only to leaders of its jobs: any of them may lead next. */
  readonly heardByAll: boolean;
  /** Ends jobs that their managers do not know any more. */
  readonly unknownJobEnds: boolean;
  /** Delays queued metrics without dropping any. (AD-23) */
  readonly waitingFiguresStay: boolean;
  /** Never reuses an incarnation, even if the data directory was emptied between two starts. */
  readonly startsDrawn: boolean;
}

export const WORKER_RULES: WorkerRules = {
  viewFenced: true,
  promiseDurable: true,
  figuresKept: true,
  eventsRepeated: true,
  eventsRenumbered: true,
  sentFramesStay: true,
  lossTold: true,
  isolationEndsLoad: true,
  isolatedKilled: true,
  heardByAll: true,
  unknownJobEnds: true,
  waitingFiguresStay: true,
  startsDrawn: true,
};
