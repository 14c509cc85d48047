/** Knowledge of a run's driver about a lost core. */

/** Known metrics of a core's share when the core is lost; a later driver of the run receives the same. */
export interface LossFigures {
  /** Workflow that ran there; null for none. */
  readonly workflow: string | null;
  readonly users: number;
  /** Requests of the share, up to the last frame. */
  readonly requestsCounted: number;
  /** Upper bound of requests since then. */
  readonly requestsUnseen: number;
  /** Maximum requests in any second; absent in earlier versions. */
  readonly requestsPerSecondMax?: number | undefined;
  /** Measured time of its last frame. */
  readonly measuredMs: number;
  /** The share had begun, and too little is known to bound its load. */
  readonly isUnbounded?: boolean | undefined;
  /** Time of the run up to which unseen requests are counted; absent: until the loss was agreed on. */
  readonly noticedMs?: number | undefined;
}

/** Details of a lost core from its driver. */
export interface LossDetails {
  /** Metrics when the loss was noticed; null when they are unknown. */
  readonly figures?: LossFigures | null | undefined;
  readonly worker?: string | null | undefined;
}
