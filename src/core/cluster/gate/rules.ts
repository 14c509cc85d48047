/** The rules of a gate that can be broken one at a time. */

export interface GateRules {
  /** A datacenter is asked when those before it have given the job cores. (T14) */
  readonly placesInOrder: boolean;
  /** Where a job does not run any more it is told to end. */
  readonly leftCancelled: boolean;
  /** An open circuit is probed, with traffic and without. (CB-5, P6) */
  readonly returnNoticed: boolean;
}

export const GATE_RULES: GateRules = {
  placesInOrder: true,
  leftCancelled: true,
  returnNoticed: true,
};
