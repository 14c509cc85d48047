/** The rules of a link that can be broken one at a time. */

export interface LinkRules {
  /** What finds no room in the network waits; nothing leaves the queue unless it is written or counted. */
  readonly unsentWaits: boolean;
}

export const LINK_RULES: LinkRules = { unsentWaits: true };
