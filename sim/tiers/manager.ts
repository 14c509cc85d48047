/**
 * What stands above the ledger node in a simulated manager: the production machine, and what `src/tiers/manager`
 * does for it with files. The node below is that of the ledger simulator.
 */

import { assertNever } from "../../src/core/base/assert.ts";
import type { Address, NodeId } from "../../src/core/base/ids.ts";
import { RegisteredApp } from "../../src/core/ledger/node/registered-app.ts";
import { Manager } from "../../src/core/tiers/manager/manager.ts";
import type { ManagerRules } from "../../src/core/tiers/manager/rules.ts";
import {
  type GroupLookup,
  MANAGER_DEFAULTS,
  type ManagerOptions,
} from "../../src/core/tiers/manager/types.ts";
import { BLOB_CHUNK_BYTES_MAX } from "../../src/core/tiers/messages.ts";
import type { LedgerMachine } from "../../src/core/tiers/process/ledger-machine.ts";
import {
  type AboveEffect,
  type AboveInput,
  ManagerProcess,
} from "../../src/core/tiers/process/manager-process.ts";
import type { Above, DrivenMachine } from "../ledger/machine.ts";
import type { LedgerProcess } from "../ledger/node.ts";
import type { BlobDisk } from "./blob-disk.ts";
import { ERROR_KINDS } from "./core.ts";

export const DATACENTER = "dc1";

interface ManagerSpec {
  readonly addresses: ReadonlyMap<NodeId, Address>;
  readonly rules: ManagerRules;
}

interface Upload {
  readonly bytes: Uint8Array;
  offset: number;
}

export class ManagerAbove implements Above {
  readonly #name: NodeId;
  readonly #managers: readonly NodeId[];
  readonly #addresses: Readonly<Record<string, string>>;
  readonly #rules: ManagerRules;
  readonly #blobs: BlobDisk;
  readonly #uploads = new Map<string, Upload>();
  #process: LedgerProcess | null = null;
  machine: ManagerProcess | null = null;

  constructor(name: NodeId, { addresses, rules }: ManagerSpec, blobs: BlobDisk) {
    this.#name = name;
    this.#managers = [...addresses.keys()];
    this.#addresses = Object.fromEntries(addresses);
    this.#rules = rules;
    this.#blobs = blobs;
  }

  /** The process that it stands in; told once. */
  standsIn(process: LedgerProcess): void {
    this.#process = process;
  }

  compose(ledger: LedgerMachine, boot: string): DrivenMachine {
    this.#blobs.crash();
    this.#uploads.clear();
    const lookup: GroupLookup = (name) => {
      const group = ledger.node.groups.get(name);
      if (!(group?.app instanceof RegisteredApp)) return null;
      return { application: group.app.application, primary: group.replica.state.primary };
    };
    const options: ManagerOptions = {
      ...{ self: this.#name, datacenter: DATACENTER, managers: this.#managers, boot },
      ...{ addresses: this.#addresses, version: "1.0.0", rules: this.#rules },
      machine: { node: "", platform: "", cpuModel: "" },
      ...{ errorKinds: ERROR_KINDS, config: MANAGER_DEFAULTS },
    };
    this.machine = new ManagerProcess(options, ledger, new Manager(options, lookup));
    return this.machine;
  }

  onServing(): void {
    this.#later(() => ({ kind: "blobsHeld", hashes: this.#blobs.hashes }));
  }

  run(effect: AboveEffect): void {
    switch (effect.kind) {
      case "keepBlob": {
        const { bytes, hash } = effect;
        this.#keep(hash, bytes, (problem) => {
          if (problem !== null) this.#later(() => ({ kind: "blobNotKept", hash, problem }));
        });
        return;
      }
      case "readBlob": {
        const { hash } = effect;
        this.#later(() => ({ kind: "blobRead", hash, bytes: this.#blobs.read(hash) }));
        return;
      }
      case "blobGet": {
        const { hash, id, offset } = effect;
        this.#later(() => {
          const whole = this.#blobs.read(hash);
          const bytes = whole?.subarray(offset, offset + BLOB_CHUNK_BYTES_MAX) ?? null;
          return { kind: "blobPart", id, total: whole?.length ?? 0, bytes };
        });
        return;
      }
      case "blobPut":
        this.#put(effect);
        return;
      case "pinBlobs":
        // Nothing is dropped here.
        return;
      default:
        assertNever(effect);
    }
  }

  #later(input: () => AboveInput): void {
    const process = this.#process;
    process?.after(this.#blobs.drawSyncMs(), () => process.tell(input()));
  }

  #keep(hash: string, bytes: Uint8Array, done: (problem: string | null) => void): void {
    const process = this.#process;
    const life = process?.life;
    this.#blobs.keep(hash, bytes, (problem) => {
      if (process?.life !== life) return;
      process?.after(0, () => {
        if (problem === null) process.tell({ kind: "blobsHeld", hashes: [hash] });
        done(problem);
      });
    });
  }

  #put({ bytes, hash, id, offset, total }: Extract<AboveEffect, { kind: "blobPut" }>): void {
    const answer = (held: number, problem: string | null): void =>
      this.#later(() => ({ kind: "blobPutDone", id, held, problem }));
    const known = this.#blobs.read(hash);
    if (known !== null) {
      answer(known.length, null);
      return;
    }
    const upload = this.#uploads.get(hash) ?? { bytes: new Uint8Array(total), offset: 0 };
    this.#uploads.set(hash, upload);
    // A part that came before, or after one that was lost: the sender hears where to go on.
    if (offset === upload.offset && offset + bytes.length <= upload.bytes.length) {
      upload.bytes.set(bytes, offset);
      upload.offset += bytes.length;
    }
    if (upload.offset < upload.bytes.length) {
      answer(upload.offset, null);
      return;
    }
    this.#uploads.delete(hash);
    this.#keep(hash, upload.bytes, (problem) => answer(problem === null ? total : 0, problem));
  }
}
