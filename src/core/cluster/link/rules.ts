/** Rules of a link that tests can break one at a time. */

export interface LinkRules {
  /**
   * Messages that the network has no space for stay queued; each one leaves the queue written or counted as dropped.
   */
  readonly unsentWaits: boolean;
}

export const LINK_RULES: LinkRules = { unsentWaits: true };
