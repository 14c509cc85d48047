/**
 * Planted defects: each breaks one rule of a machine, or, for the variants of the first design (docs/internals/vsr.md),
 * several together. The simulator must find every one it can show; the list below names the others and what finds them.
 */

import { LINK_RULES, type LinkRules } from "../../src/core/cluster/link/rules.ts";
import { PROCESS_RULES, type ProcessRules } from "../../src/core/cluster/node/rules.ts";
import { VSR_RULES, type VsrRules } from "../../src/core/ledger/group/rules.ts";
import { IDEMPOTENCY_RULES, type IdempotencyRules } from "../../src/core/ledger/keys/rules.ts";
import { WAL_RULES, type WalRules } from "../../src/core/ledger/log/rules.ts";
import { NODE_RULES, type NodeRules } from "../../src/core/ledger/node/rules.ts";
import { STORE_RULES, type StoreRules } from "../../src/core/ledger/store/rules.ts";

interface LedgerSimRules {
  readonly vsr: VsrRules;
  readonly wal: WalRules;
  readonly store: StoreRules;
  readonly idempotency: IdempotencyRules;
  readonly node: NodeRules;
  readonly link: LinkRules;
  readonly process: ProcessRules;
}

const ALL_LEDGER_RULES: LedgerSimRules = {
  vsr: VSR_RULES,
  wal: WAL_RULES,
  store: STORE_RULES,
  idempotency: IDEMPOTENCY_RULES,
  node: NODE_RULES,
  link: LINK_RULES,
  process: PROCESS_RULES,
};

/** As the first design was written, and its partial repairs. */
const VARIANTS: Readonly<Record<string, Partial<VsrRules>>> = {
  A: {
    viewChangeQuorum: false,
    adoptLog: false,
    installBeforeAck: false,
    adoptByNormalView: false,
    ownerByView: false,
    staleViewRefused: false,
    promiseDurable: false,
    primaryLogs: false,
    joinByInstall: false,
  },
  B: {
    adoptLog: false,
    installBeforeAck: false,
    adoptByNormalView: false,
    ownerByView: false,
    staleViewRefused: false,
    promiseDurable: false,
    primaryLogs: false,
    joinByInstall: false,
  },
  C: { adoptByNormalView: false },
  D: { ownerByView: false },
  F: { promiseDurable: false },
  G: { ackAfterDurable: false },
  H: { majorityQuorum: false },
};

/** Rules that this simulator's composition cannot show, and what does. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  "vsr.ackOfThisView": "takes histories longer than these runs: npm run sim:group -- mutants",
  "wal.lsnContiguous":
    "no fault here writes a whole record twice: src/core/ledger/log/recovery.test.ts",
  "wal.deadlineFromFirst": "costs time, loses nothing: src/core/ledger/log/model.test.ts",
  "wal.unknownTypeRefused": "nobody here writes such records: src/core/ledger/log/recovery.test.ts",
  "idempotency.transientNeverStored":
    "admission never defers here: src/core/ledger/keys/shard-waiters.test.ts",
  "idempotency.terminalImmutable":
    "no two primaries differ about one key in flight: src/core/ledger/keys/shard.test.ts",
};

/** Names such as `vsr.adoptLog` or `variant.A`. */
export const LEDGER_MUTANTS: readonly string[] = [
  ...Object.entries(ALL_LEDGER_RULES).flatMap(([machine, rules]) =>
    Object.keys(rules).map((rule) => `${machine}.${rule}`),
  ),
  ...Object.keys(VARIANTS).map((name) => `variant.${name}`),
].filter((name) => ELSEWHERE[name] === undefined);

export function ledgerRulesWithout(mutant: string | null): LedgerSimRules {
  if (mutant === null) return ALL_LEDGER_RULES;
  const [machine = "", rule = ""] = mutant.split(".");
  const variant = machine === "variant" ? VARIANTS[rule] : undefined;
  if (variant !== undefined) return { ...ALL_LEDGER_RULES, vsr: { ...VSR_RULES, ...variant } };
  const rules = Object.entries(ALL_LEDGER_RULES).find(([name]) => name === machine)?.[1];
  if (rules === undefined || !(rule in rules)) {
    throw new Error(`unknown mutant "${mutant}"; one of: ${LEDGER_MUTANTS.join(", ")}`);
  }
  return { ...ALL_LEDGER_RULES, [machine]: { ...rules, [rule]: false } };
}
