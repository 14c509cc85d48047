/** The rules of a process, beside those of its parts, that can be broken one at a time. */

export interface ProcessRules {
  /** Nodes that do not know the same ledger do not hear each other. (VSR-26) */
  readonly digestCompared: boolean;
}

export const PROCESS_RULES: ProcessRules = { digestCompared: true };
