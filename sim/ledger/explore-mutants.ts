/** The planted defects that the scope of the exploration reaches, and the scope that suffices. */

import type { VsrRules } from "../../src/core/ledger/group/rules.ts";
import type { Scope } from "./explore.ts";

type Small = Omit<Scope, "statesMax">;

interface Reached {
  readonly name: string;
  readonly scope: Small;
  /** Within some thousand states. */
  readonly quick: boolean;
}

const found = (rule: keyof VsrRules, scope: Partial<Small> = {}, quick = true): Reached => ({
  name: rule,
  scope: { members: 3, values: 1, views: 2, crashes: 0, ...scope, rules: { [rule]: false } },
  quick,
});

export const REACHED: readonly Reached[] = [
  found("viewChangeQuorum"),
  found("adoptLog"),
  found("installBeforeAck"),
  found("adoptByNormalView", { views: 3, values: 2 }, false),
  found("ownerByView", { views: 3 }),
  found("staleViewRefused", { views: 3 }),
  found("promiseDurable", { crashes: 1 }),
  found("ackAfterDurable", { crashes: 1 }),
  found("primaryLogs", { crashes: 1 }),
  found("seqContinues"),
  found("joinByInstall"),
  found("applyInOrder"),
];
