/** The rules of a manager that can be broken one at a time. */

export interface ManagerRules {
  /** What a leader decided that was deposed since is not folded in. */
  readonly staleViewRejected: boolean;
  /** No two placements have the same token. */
  readonly tokensUnique: boolean;
  /** Where rows and iterations stand outlives whoever holds the log in memory. */
  readonly leasesKept: boolean;
  /** One key is one job. */
  readonly keyOnce: boolean;
  /** A job that has ended holds no cores. */
  readonly grantsFreed: boolean;
  /** A core that the log calls lost is given back wherever it still runs. */
  readonly lostReleased: boolean;
  /** All cores go back when a job ends. */
  readonly releasedAtEnd: boolean;
  /** A worker is told who leads, and says what it runs, before it gets orders. */
  readonly announcedFirst: boolean;
  /** Orders that nobody has confirmed are sent again. */
  readonly ordersRepeated: boolean;
  /** A leader lets go of none of a predecessor's cancels. */
  readonly cancelKept: boolean;
  /** A manager that has just begun waits for workers that may live. */
  readonly workersGathered: boolean;
  /** Figures that a leader does not have from its predecessor are said to be missing. */
  readonly missingNoted: boolean;
  /** What workers tell before a leader has adopted what runs is not taken. */
  readonly adoptedBeforeHeard: boolean;
  /** A new leader waits for the figures of shares that had ended before it ends the job. */
  readonly heardOut: boolean;
  /** The end of a job is told to its datacenter by whoever leads it then. */
  readonly endToldAgain: boolean;
  /** A worker that is silent for too long is lost. */
  readonly silenceNoticed: boolean;
  /** A manager that is late itself waits longer before it calls a worker silent. */
  readonly latenessAllowed: boolean;
  /** No worker is given up while more than half of them fail at once. (P5) */
  readonly massFailureHeld: boolean;
  /** No job is timed out that more time was granted for. (P4) */
  readonly extensionsCounted: boolean;
  /** The share of a lost core goes on elsewhere where cores are free. */
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
