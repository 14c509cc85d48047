/**
 * Application on the ledger node of a simulated manager: the production machine, and the file effects of
 * `src/nodes/manager`. The node itself is that of the ledger simulator.
 */

import type { Address, NodeId } from "../../src/core/base/ids.ts";
import { groupsIn } from "../../src/core/cluster/manager/lookup.ts";
import { Manager } from "../../src/core/cluster/manager/manager.ts";
import type { ManagerRules } from "../../src/core/cluster/manager/rules.ts";
import { MANAGER_DEFAULTS, type ManagerOptions } from "../../src/core/cluster/manager/types.ts";
import type { LedgerMachine } from "../../src/core/cluster/node/ledger-machine.ts";
import { ManagerProcess } from "../../src/core/cluster/node/manager-process.ts";
import type { PressureRules } from "../../src/core/cluster/overload/rules.ts";
import type { Above, AboveOwnEffect, DrivenMachine } from "../ledger/machine.ts";
import type { BlobEffects } from "./blob-effects.ts";
import { ERROR_KINDS } from "./core.ts";

interface ManagerSpec {
  readonly datacenter: string;
  readonly addresses: ReadonlyMap<NodeId, Address>;
  readonly rules: ManagerRules;
  readonly pressure: PressureRules;
}

export class ManagerAbove implements Above {
  readonly #name: NodeId;
  readonly #datacenter: string;
  readonly #managers: readonly NodeId[];
  readonly #addresses: Readonly<Record<string, string>>;
  readonly #rules: ManagerRules;
  readonly #pressure: PressureRules;
  readonly blobs: BlobEffects;
  machine: ManagerProcess | null = null;
  manager: Manager | null = null;

  constructor(name: NodeId, spec: ManagerSpec, blobs: BlobEffects) {
    const { addresses, datacenter, pressure, rules } = spec;
    this.#pressure = pressure;
    this.#name = name;
    this.#managers = [...addresses.keys()];
    this.#addresses = Object.fromEntries(addresses);
    this.#rules = rules;
    this.#datacenter = datacenter;
    this.blobs = blobs;
  }

  compose(ledger: LedgerMachine, boot: string): DrivenMachine {
    this.blobs.begin();
    const options: ManagerOptions = {
      ...{ self: this.#name, datacenter: this.#datacenter, managers: this.#managers, boot },
      ...{ addresses: this.#addresses, version: "1.0.0", rules: this.#rules },
      machine: { node: "", platform: "", cpuModel: "" },
      ...{ errorKinds: ERROR_KINDS, config: MANAGER_DEFAULTS },
    };
    this.manager = new Manager(
      options,
      groupsIn(() => ledger.node),
    );
    this.machine = new ManagerProcess(options, ledger, this.manager, this.#pressure);
    return this.machine;
  }

  onServing(): void {
    this.blobs.onServing();
  }

  run(effect: AboveOwnEffect): void {
    if (effect.kind !== "toDatacenter") this.blobs.run(effect);
  }
}
