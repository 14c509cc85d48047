/** The production machine of a node, with the keys, names and addresses of a simulated one. */

import { address, type NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { Site } from "../../src/core/ledger/job/placement.ts";
import { TALLY } from "../../src/core/ledger/node/testing/tally.ts";
import type { LedgerNodeConfig, LedgerRules } from "../../src/core/ledger/node/types.ts";
import type { StoreOptions } from "../../src/core/ledger/store/types.ts";
import type { QueueLimits } from "../../src/core/tiers/link/limits.ts";
import type { LinkRules } from "../../src/core/tiers/link/rules.ts";
import type { LedgerDescription } from "../../src/core/tiers/process/describe-ledger.ts";
import { LedgerMachine } from "../../src/core/tiers/process/ledger-machine.ts";
import type { ProcessRules } from "../../src/core/tiers/process/rules.ts";
import type { KeyRing } from "../../src/wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import { noCompressor } from "../kernel/keys.ts";

export interface MachineSpec {
  readonly index: number;
  readonly id: NodeId;
  readonly sites: readonly Site[];
  readonly shards: readonly number[];
  readonly config: LedgerNodeConfig;
  readonly rules: LedgerRules;
  readonly linkRules: LinkRules;
  readonly processRules: ProcessRules;
  readonly queue: QueueLimits;
  /** Groups in one slice of a checkpoint. */
  readonly sliceGroupsMax: number;
}

interface MachineLife {
  readonly ledger: LedgerDescription;
  readonly boot: string;
  readonly ring: KeyRing;
  readonly random: Random;
  readonly store: StoreOptions;
}

export function addressOf(index: number): string {
  return `10.0.0.${index + 1}:7100`;
}

export function machineOf(spec: MachineSpec, life: MachineLife): LedgerMachine {
  const { index, id, sites, shards, config, rules, queue: limits, sliceGroupsMax } = spec;
  const { ledger, boot, ring, random, store } = life;
  const entropy = random.fork("entropy");
  const hello = {
    ...{ cluster: "simulated", environment: "test", nodeVersion: "" },
    ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
    capabilities: CAPABILITIES.filter((one) => one !== "compression"),
    ...{ node: id, address: addressOf(index), datacenter: sites[index]?.region ?? "" },
    role: "gate" as const,
  };
  const peers = sites.flatMap(({ node: name, region }, at) =>
    at === index ? [] : [{ name, region, address: address(addressOf(at)) }],
  );
  return new LedgerMachine(
    {
      node: { self: id, sites, config, boot, rules, shards, kinds: [TALLY] },
      peers: {
        ...{ hello, ledger, peers, ring, limits, compressor: noCompressor },
        entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
        rules: { link: spec.linkRules, peers: spec.processRules },
      },
      ...{ store, sliceGroupsMax },
    },
    random,
  );
}

/** A list of nodes with a mistake in it. */
export function wrongly(sites: readonly Site[], index: number): readonly Site[] {
  const wrong = (index + 1) % sites.length;
  return sites.map((site, i) => (i === wrong ? { ...site, region: "elsewhere" } : site));
}
