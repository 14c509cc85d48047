/** Rules of a manager that the simulator can switch off one at a time. */

export interface ManagerRules {
  /** Rejects entries decided by a leader that was deposed before they were committed. */
  readonly staleViewRejected: boolean;
  /** Gives every placement its own token. */
  readonly tokensUnique: boolean;
  /** Keeps the positions of rows and iterations across leader changes. */
  readonly leasesKept: boolean;
  /** Creates one job per key. */
  readonly keyOnce: boolean;
  /** Frees the cores of a finished job. */
  readonly grantsFreed: boolean;
  /** Releases a core that the log calls lost wherever it still runs. */
  readonly lostReleased: boolean;
  /** Releases all cores when a job ends. */
  readonly releasedAtEnd: boolean;
  /** Announces the leader to a worker, which reports its cores, before sending orders. */
  readonly announcedFirst: boolean;
  /** Resends unconfirmed orders. */
  readonly ordersRepeated: boolean;
  /** Makes a new leader continue the cancels of its predecessor. */
  readonly cancelKept: boolean;
  /** Makes a manager that has just started wait for workers that may be alive. */
  readonly workersGathered: boolean;
  /** Reports metrics that a leader does not have from its predecessor as missing. */
  readonly missingNoted: boolean;
  /** Ignores events of workers until the leader has adopted the running job. */
  readonly adoptedBeforeHeard: boolean;
  /** Makes a new leader wait for the metrics of finished shares before it ends the job. */
  readonly heardOut: boolean;
  /** Makes a new leader report the end of a job to its datacenter again. */
  readonly endToldAgain: boolean;
  /** Declares a worker lost after too long a silence. */
  readonly silenceNoticed: boolean;
  /** Extends the timeout of workers by the manager's own lateness. */
  readonly latenessAllowed: boolean;
  /** Gives up no worker while more than half of them fail at once. (P5) */
  readonly massFailureHeld: boolean;
  /** Exempts jobs with a granted extension from timing out. (P4) */
  readonly extensionsCounted: boolean;
  /** Reassigns the share of a lost core where cores are free. */
  readonly sharesDealtAgain: boolean;
}

export const MANAGER_RULES: ManagerRules = {
  staleViewRejected: true,
  tokensUnique: true,
  leasesKept: true,
  keyOnce: true,
  grantsFreed: true,
  lostReleased: true,
  releasedAtEnd: true,
  announcedFirst: true,
  ordersRepeated: true,
  cancelKept: true,
  workersGathered: true,
  missingNoted: true,
  adoptedBeforeHeard: true,
  heardOut: true,
  endToldAgain: true,
  silenceNoticed: true,
  latenessAllowed: true,
  massFailureHeld: true,
  extensionsCounted: true,
  sharesDealtAgain: true,
};
