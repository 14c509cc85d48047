/** What whoever drives a run knows of a core that is lost. */

/** What is known of a core's share when the core is lost; whoever drives the run later is told the same. */
export interface LossFigures {
  /** What ran there; null when nothing did. */
  readonly workflow: string | null;
  readonly users: number;
  /** Of the share, up to the last frame. */
  readonly requestsCounted: number;
  /** Since then, at most. */
  readonly requestsUnseen: number;
  /** The most that it made in any second; earlier versions do not tell. */
  readonly requestsPerSecondMax?: number | undefined;
  /** Of its last frame. */
  readonly measuredMs: number;
  /** It had begun, and too little is known to say how much it makes. */
  readonly isUnbounded?: boolean | undefined;
  /** Milliseconds of the run up to which the unseen are meant; until its loss was agreed on when it is not told. */
  readonly noticedMs?: number | undefined;
}

/** What its driver knows of a lost core. */
export interface LossDetails {
  /** As they were when its loss was noticed; null when nobody knows them any more. */
  readonly figures?: LossFigures | null | undefined;
  readonly worker?: string | null | undefined;
}
