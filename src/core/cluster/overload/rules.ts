/** Rules of admission that the simulator can switch off one at a time. */

export interface PressureRules {
  /** Serves requests that end work, or show that it has ended, in every state. (AD-22.3) */
  readonly criticalServed: boolean;
  /** Gives rejected clients a retry time. (AD-22.8, AD-24.1) */
  readonly refusalTimed: boolean;
  /** Starts nothing of a rejected request. */
  readonly refusedUnbegun: boolean;
}

export const PRESSURE_RULES: PressureRules = {
  criticalServed: true,
  refusalTimed: true,
  refusedUnbegun: true,
};
