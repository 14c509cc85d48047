/** The rules of admission that can be broken one at a time. */

export interface PressureRules {
  /** What ends work, or shows that it has ended, is served in every state. (AD-22.3) */
  readonly criticalServed: boolean;
  /** Who is refused hears when to come back. (AD-22.8, AD-24.1) */
  readonly refusalTimed: boolean;
  /** Nothing of a request that is refused is begun. */
  readonly refusedUnbegun: boolean;
}

export const PRESSURE_RULES: PressureRules = {
  criticalServed: true,
  refusalTimed: true,
  refusedUnbegun: true,
};
