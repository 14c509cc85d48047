/** Rules of a gate that tests can break one at a time. */

export interface GateRules {
  /** A datacenter is asked after those before it have provided cores for the job. (T14) */
  readonly placesInOrder: boolean;
  /** Cancels the job in datacenters where it does not run any more. */
  readonly leftCancelled: boolean;
  /** Probes an open circuit, with and without traffic. (CB-5, P6) */
  readonly returnNoticed: boolean;
}

export const GATE_RULES: GateRules = {
  placesInOrder: true,
  leftCancelled: true,
  returnNoticed: true,
};
