/** The rules of a worker that can be broken one at a time. */

export interface WorkerRules {
  /** Orders of a view below the highest that was promised are refused. (AD-10) */
  readonly viewFenced: boolean;
  /** Nothing of a view is carried out before its promise is on disk. */
  readonly promiseDurable: boolean;
  /** The last figures of shares that have ended are told to each new leader. */
  readonly figuresKept: boolean;
  /** What was under way when its connection broke is sent again. */
  readonly eventsRepeated: boolean;
  /** Another leader counts events from zero. */
  readonly eventsRenumbered: boolean;
  /** Only a frame that was not sent is replaced by the next. */
  readonly sentFramesStay: boolean;
  /** A core that is gone is told to the leader. */
  readonly lossTold: boolean;
  /** Load that nobody can stop is ended. (FAIL-F4) */
  readonly isolationEndsLoad: boolean;
  /** What does not end when it is asked to is killed. */
  readonly isolatedKilled: boolean;
  /** Every manager hears it, not only those that lead its jobs: any of them may lead next. */
  readonly heardByAll: boolean;
  /** A job that is over for its managers is over here. */
  readonly unknownJobEnds: boolean;
  /** Figures that wait are sent later, none is dropped. (AD-23) */
  readonly waitingFiguresStay: boolean;
  /** No two starts of a worker have the same incarnation, also when its data directory was emptied between them. */
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
