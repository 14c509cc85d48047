/**
 * A manager as a process: the ledger node that managers replicate with, the manager above it, and the files of
 * jobs on disk.
 */

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { assertNever } from "../../core/base/assert.ts";
import { RegisteredApp } from "../../core/ledger/node/registered-app.ts";
import { DATACENTER_KIND } from "../../core/tiers/manager/datacenter-state.ts";
import { Manager } from "../../core/tiers/manager/manager.ts";
import { RUN_KIND } from "../../core/tiers/manager/run-state.ts";
import {
  type GroupLookup,
  MANAGER_DEFAULTS,
  type ManagerOptions,
} from "../../core/tiers/manager/types.ts";
import { BLOB_CHUNK_BYTES_MAX } from "../../core/tiers/messages.ts";
import { type AboveEffect, ManagerProcess } from "../../core/tiers/process/manager-process.ts";
import type { Background } from "../../host/background.ts";
import { BlobStore } from "../../host/blob-store.ts";
import type { AuditRequester, OpenAudit } from "../../host/ports/audit.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log } from "../../host/ports/log.ts";
import { sitesOf } from "../../ledger/config.ts";
import { LedgerHost } from "../../ledger/host.ts";
import { ERROR_KINDS } from "../../protocols/protocol.ts";
import type { ManagerNodeConfig } from "./config.ts";
import { Uploads } from "./uploads.ts";

interface ManagerHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  readonly openAudit: () => Promise<OpenAudit>;
  readonly version: string;
  /** What runs here, for the results of jobs. */
  readonly machine: ManagerOptions["machine"];
  readonly onFatal: (reason: string, error: unknown) => void;
}

export class ManagerHost {
  readonly #handlers: ManagerHandlers;
  readonly #blobs: BlobStore;
  readonly #uploads: Uploads;
  #ledger: LedgerHost | null = null;

  private constructor(blobs: BlobStore, handlers: ManagerHandlers) {
    this.#handlers = handlers;
    this.#blobs = blobs;
    this.#uploads = new Uploads(blobs);
  }

  /** Resolves when the node has recovered and serves. Rejects with what is wrong, sockets closed. */
  static async start(config: ManagerNodeConfig, handlers: ManagerHandlers): Promise<ManagerHost> {
    const { dataDir } = config.ledger;
    const blobs = await BlobStore.open(join(dataDir, "blobs"), config.blobBytesMax);
    const host = new ManagerHost(blobs, handlers);
    await host.#start(config);
    return host;
  }

  get encryption(): string {
    return this.#ledger?.encryption ?? "";
  }

  /** Lets others lead and what is under way finish, writes a checkpoint, ends. */
  async stop(requester: AuditRequester): Promise<void> {
    await this.#ledger?.stop(requester);
  }

  reloadKeys(requester: AuditRequester): void {
    this.#ledger?.reloadKeys(requester);
  }

  async #start({ datacenter, ledger }: ManagerNodeConfig): Promise<void> {
    const { background, clock, log, onFatal, openAudit, version } = this.#handlers;
    const boot = randomUUID().slice(0, 13);
    this.#ledger = await LedgerHost.start(ledger, {
      ...{
        clock,
        log,
        background,
        openAudit,
        version,
        onFatal,
        kinds: [DATACENTER_KIND, RUN_KIND],
      },
      onEvent: () => undefined,
      above: {
        compose: (machine) => {
          const lookup: GroupLookup = (name) => {
            const group = machine.node.groups.get(name);
            if (!(group?.app instanceof RegisteredApp)) return null;
            return { application: group.app.application, primary: group.replica.state.primary };
          };
          const managers = sitesOf(ledger).map(({ node }) => node);
          const manager = new Manager(
            {
              ...{ self: ledger.name, datacenter, managers, boot, version },
              machine: this.#handlers.machine,
              errorKinds: ERROR_KINDS,
              config: MANAGER_DEFAULTS,
            },
            lookup,
          );
          return new ManagerProcess(ledger.name, machine, manager);
        },
        run: (effect) => this.#run(effect),
      },
    });
    this.#ledger.tell({ kind: "blobsHeld", hashes: this.#blobs.hashes });
  }

  #run(effect: AboveEffect): void {
    const { background } = this.#handlers;
    const ledger = this.#ledger;
    switch (effect.kind) {
      case "keepBlob":
        background.run("keep a blob", async () => {
          const { bytes, hash } = effect;
          const problem = await this.#blobs.keep(hash, bytes);
          if (problem === null) ledger?.tell({ kind: "blobsHeld", hashes: [hash] });
          else this.#handlers.log.event("error", "blob.notKept", { hash, problem });
        });
        return;
      case "readBlob":
        background.run("read a blob", async () => {
          const { hash } = effect;
          ledger?.tell({ kind: "blobRead", hash, bytes: await this.#blobs.read(hash) });
        });
        return;
      case "blobGet":
        background.run("send a part of a blob", async () => {
          const { hash, id, offset } = effect;
          const bytes = await this.#blobs.readPart(hash, offset, BLOB_CHUNK_BYTES_MAX);
          const total = this.#blobs.bytesOf(hash) ?? 0;
          ledger?.tell({ kind: "blobPart", id, total, bytes });
        });
        return;
      case "blobPut":
        background.run("take a part of a blob", async () => {
          const { complete, held, problem } = await this.#uploads.put(effect);
          if (complete) ledger?.tell({ kind: "blobsHeld", hashes: [effect.hash] });
          ledger?.tell({ kind: "blobPutDone", id: effect.id, held, problem });
        });
        return;
      default:
        assertNever(effect);
    }
  }
}
