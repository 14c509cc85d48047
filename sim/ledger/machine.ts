/** The production machine of a node, with the keys, names and addresses of a simulated one. */

import type { Millis } from "../../src/core/base/brand.ts";
import { address, type NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { QueueLimits } from "../../src/core/cluster/link/limits.ts";
import type { LinkRules } from "../../src/core/cluster/link/rules.ts";
import type { LedgerDescription } from "../../src/core/cluster/node/describe-ledger.ts";
import type {
  GateProcessEffect,
  GateProcessInput,
} from "../../src/core/cluster/node/gate-process.ts";
import { LedgerMachine } from "../../src/core/cluster/node/ledger-machine.ts";
import type { ProcessRules } from "../../src/core/cluster/node/rules.ts";
import type { Site } from "../../src/core/ledger/job/placement.ts";
import type { GroupKind } from "../../src/core/ledger/node/application.ts";
import type { LedgerNodeConfig, LedgerRules } from "../../src/core/ledger/node/types.ts";
import type { StoreOptions } from "../../src/core/ledger/store/types.ts";
import type { KeyRing } from "../../src/wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import { noCompressor } from "../kernel/keys.ts";

export interface MachineSpec {
  readonly index: number;
  /** Index of its first site, where several ledgers share a world. */
  readonly firstIndex?: number;
  readonly id: NodeId;
  readonly sites: readonly Site[];
  readonly role: "gate" | "manager";
  readonly shards: readonly number[];
  /** Kinds of groups beside jobs and shards. */
  readonly kinds: readonly GroupKind[];
  /** Extracts the part of a job that makes it the same job under one key. */
  readonly identityOf?: (spec: Uint8Array) => Uint8Array;
  readonly config: LedgerNodeConfig;
  readonly rules: LedgerRules;
  readonly linkRules: LinkRules;
  readonly processRules: ProcessRules;
  readonly queue: QueueLimits;
  /** Groups in one slice of a checkpoint. */
  readonly sliceGroupsMax: number;
}

/** Application on the node in the same process, as in `src/ledger/host.ts`. */
export interface Above {
  compose(ledger: LedgerMachine, boot: string): DrivenMachine;
  /** Requests are taken from now on. */
  onServing(): void;
  run(effect: AboveOwnEffect): void;
}

/** Effects that a ledger's own process does not carry out. */
export type AboveOwnEffect = Extract<
  GateProcessEffect,
  { kind: "keepBlob" | "readBlob" | "blobGet" | "blobPut" | "pinBlobs" | "toDatacenter" }
>;

/** A ledger's machine, or one that contains it. */
export interface DrivenMachine {
  readonly wantsTurn: boolean;
  take(input: GateProcessInput, now: Millis, wall: number): void;
  flush(): readonly GateProcessEffect[];
  nextDeadline(): Millis | null;
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
  const { index, firstIndex = 0, id, identityOf, role, sites, shards, kinds } = spec;
  const { config, rules, sliceGroupsMax } = spec;
  const position = index - firstIndex;
  const { ledger, boot, ring, random, store } = life;
  const entropy = random.fork("entropy");
  const hello = {
    ...{ cluster: "simulated", environment: "test", nodeVersion: "" },
    ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
    capabilities: CAPABILITIES.filter((one) => one !== "compression"),
    ...{ node: id, address: addressOf(index), datacenter: sites[position]?.region ?? "" },
    role,
  };
  const peers = sites.flatMap(({ node: name, region }, at) =>
    at === position ? [] : [{ name, region, address: address(addressOf(firstIndex + at)) }],
  );
  return new LedgerMachine(
    {
      node: {
        ...{ self: id, sites, config, boot, rules, shards, kinds },
        ...(identityOf === undefined ? {} : { identityOf }),
      },
      peers: {
        ...{ hello, ledger, peers, ring, limits: spec.queue, compressor: noCompressor },
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
