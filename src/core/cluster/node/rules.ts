/** Rules of a process, in addition to those of its parts, that tests can break one at a time. */

export interface ProcessRules {
  /** Nodes of different ledgers ignore each other. (VSR-26) */
  readonly digestCompared: boolean;
}

export const PROCESS_RULES: ProcessRules = { digestCompared: true };
