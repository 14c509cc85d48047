/**
 * Application on the ledger node of a simulated gate: the production machine with its links to the managers of every
 * datacenter, and the file and socket effects of `src/nodes/gate`.
 */

import type { Address, NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import { Gate } from "../../src/core/cluster/gate/gate.ts";
import { lookupIn } from "../../src/core/cluster/gate/lookup.ts";
import type { GateRules } from "../../src/core/cluster/gate/rules.ts";
import { GATE_DEFAULTS } from "../../src/core/cluster/gate/types.ts";
import type { LinkEffect, LinkInput, StreamId } from "../../src/core/cluster/link/types.ts";
import { ClientProcess } from "../../src/core/cluster/node/client-process.ts";
import { GateProcess } from "../../src/core/cluster/node/gate-process.ts";
import type { LedgerMachine } from "../../src/core/cluster/node/ledger-machine.ts";
import type { PressureRules } from "../../src/core/cluster/overload/rules.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import { noCompressor, ringOf, secretOf } from "../kernel/keys.ts";
import type { StreamHost, Streams } from "../kernel/streams.ts";
import type { Above, AboveOwnEffect, DrivenMachine } from "../ledger/machine.ts";
import type { LedgerProcess } from "../ledger/node.ts";
import type { BlobEffects } from "./blob-effects.ts";
import { ERROR_KINDS } from "./core.ts";

export interface DatacenterSite {
  readonly name: string;
  readonly managers: readonly { readonly name: NodeId; readonly address: Address }[];
}

interface GateSpec {
  readonly name: NodeId;
  readonly addresses: ReadonlyMap<NodeId, Address>;
  readonly datacenters: readonly DatacenterSite[];
  readonly rules: GateRules;
  readonly pressure: PressureRules;
}

/** Streams to datacenters are numbered per datacenter: each gets its own range here. */
const STREAMS_PER_DATACENTER = 1_000_000;

export class GateAbove implements Above {
  readonly blobs: BlobEffects;
  readonly #spec: GateSpec;
  readonly #streams: Streams;
  readonly #random: Random;
  gate: Gate | null = null;
  machine: GateProcess | null = null;
  #process: LedgerProcess | null = null;
  #lives = 0;

  constructor(spec: GateSpec, streams: Streams, blobs: BlobEffects, random: Random) {
    this.#spec = spec;
    this.#streams = streams;
    this.blobs = blobs;
    this.#random = random;
  }

  /** Sets the process that it belongs to; called once. */
  standsIn(process: LedgerProcess): void {
    this.#process = process;
    this.blobs.standsIn(process);
  }

  compose(ledger: LedgerMachine, boot: string): DrivenMachine {
    this.blobs.begin();
    const { addresses, datacenters, name: self, pressure, rules } = this.#spec;
    const life = this.#random.fork(`life/${++this.#lives}`);
    this.gate = new Gate(
      {
        ...{ self, gates: [...addresses.keys()], boot, version: "1.0.0" },
        ...{ errorKinds: ERROR_KINDS, addresses: Object.fromEntries(addresses) },
        datacenters: datacenters.map(({ managers, name }) => ({
          name,
          managers: managers.map((one) => one.name),
        })),
        ...{ config: GATE_DEFAULTS, rules },
      },
      lookupIn(ledger.node),
    );
    const links = datacenters.map(({ managers, name }) => {
      const random = life.fork(name);
      const entropy = random.fork("entropy");
      const hello = {
        ...({ cluster: "simulated", environment: "test", role: "gate" } as const),
        datacenter: "gates",
        ...{ node: self, address: addresses.get(self) ?? "", nodeVersion: "" },
        ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
        capabilities: CAPABILITIES.filter((one) => one !== "compression"),
      };
      const client = new ClientProcess(
        {
          ...{ hello, managers: managers.map(({ address }) => address) },
          ...{ ring: ringOf([secretOf(0)]), compressor: noCompressor },
          entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
        },
        random,
      );
      return { name, managers, client };
    });
    const own = { name: self, addresses: [...addresses.values()] };
    this.machine = new GateProcess(own, ledger, this.gate, links, pressure);
    return this.machine;
  }

  onServing(): void {
    this.blobs.onServing();
  }

  run(effect: AboveOwnEffect): void {
    if (effect.kind !== "toDatacenter") {
      this.blobs.run(effect);
      return;
    }
    const { datacenter } = effect;
    const place = 1 + this.#spec.datacenters.findIndex(({ name }) => name === datacenter);
    const host = this.#hostOf(datacenter, place * STREAMS_PER_DATACENTER);
    if (host !== null) this.#streams.run(host, shifted(effect.effect, place));
  }

  /** The gate's process, as the streams to one datacenter see it. */
  #hostOf(datacenter: string, offset: number): StreamHost | null {
    const process = this.#process;
    if (process === null) return null;
    const { index, life } = process;
    return {
      ...{ index, life, listens: false },
      get powered() {
        return process.powered;
      },
      deliver: (of, input) => {
        const stream = (input.stream - offset) as StreamId;
        const own: LinkInput = { ...input, stream };
        process.deliver(of, { kind: "ofDatacenter", datacenter, input: own });
      },
    };
  }
}

function shifted(effect: LinkEffect, place: number): LinkEffect {
  const stream = (effect.stream + place * STREAMS_PER_DATACENTER) as StreamId;
  return { ...effect, stream };
}
