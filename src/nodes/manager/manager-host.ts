/**
 * A manager as a process: the ledger node that managers replicate with, the manager on top of it, and the files of jobs
 * on disk.
 */

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { UNUSED_MS_MIN } from "../../core/cluster/artifacts/replicas.ts";
import { DATACENTER_KIND } from "../../core/cluster/manager/datacenter-state.ts";
import { groupsIn } from "../../core/cluster/manager/lookup.ts";
import { Manager } from "../../core/cluster/manager/manager.ts";
import { RUN_KIND } from "../../core/cluster/manager/run-state.ts";
import {
  MANAGER_DEFAULTS,
  type ManagerConfig,
  type ManagerOptions,
} from "../../core/cluster/manager/types.ts";
import type { AboveEffect, AboveInput } from "../../core/cluster/node/above.ts";
import { ManagerProcess } from "../../core/cluster/node/manager-process.ts";
import type { Background } from "../../host/background.ts";
import { BlobStore } from "../../host/blob-store.ts";
import type { AuditRequester, OpenAudit } from "../../host/ports/audit.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log } from "../../host/ports/log.ts";
import { PRESSURE_EVERY_MS, PressureMeter } from "../../host/pressure.ts";
import { sitesOf } from "../../ledger/config.ts";
import { LedgerHost } from "../../ledger/host.ts";
import { ERROR_KINDS } from "../../protocols/protocol.ts";
import { addressesOf } from "./addresses.ts";
import { runBlobs } from "./blob-effects.ts";
import type { ManagerNodeConfig } from "./config.ts";
import { diskMetric, healthMetrics } from "./health-metrics.ts";
import { pressureMetrics } from "./pressure-metrics.ts";
import { timeoutMetrics } from "./timeout-metrics.ts";
import { Uploads } from "./uploads.ts";
import { workflowMetrics } from "./workflow-metrics.ts";

interface ManagerHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  readonly openAudit: () => Promise<OpenAudit>;
  readonly version: string;
  /** Description of this machine, for the results of jobs. */
  readonly machine: ManagerOptions["machine"];
  readonly onFatal: (reason: string, error: unknown) => void;
}

export class ManagerHost {
  readonly #handlers: ManagerHandlers;
  readonly #blobs: BlobStore;
  readonly #uploads: Uploads;
  readonly #meter = new PressureMeter();
  #ledger: LedgerHost | null = null;
  #process: ManagerProcess | null = null;
  #manager: Manager | null = null;

  private constructor(blobs: BlobStore, handlers: ManagerHandlers) {
    this.#handlers = handlers;
    this.#blobs = blobs;
    this.#uploads = new Uploads(blobs);
  }

  /** Resolves when the node has recovered and serves. Rejects with what is wrong, sockets closed. */
  static async start(config: ManagerNodeConfig, handlers: ManagerHandlers): Promise<ManagerHost> {
    const { dataDir } = config.ledger;
    let host: ManagerHost | null = null;
    const blobs = await BlobStore.open(join(dataDir, "blobs"), {
      ...{ bytesMax: config.settings.blobStore, unusedMsMin: UNUSED_MS_MIN },
      onGone: (hash) => host?.tellGone(hash),
    });
    host = new ManagerHost(blobs, handlers);
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

  /** A blob was evicted. */
  tellGone(hash: string): void {
    this.#ledger?.tell({ kind: "blobsGone", hashes: [hash] });
  }

  #measure(): void {
    const queue = this.#ledger?.logFill ?? 0;
    this.#ledger?.tell({ kind: "pressure", ...this.#meter.take(), queue });
  }

  reloadKeys(requester: AuditRequester): void {
    this.#ledger?.reloadKeys(requester);
  }

  async #start({ codeFrom, datacenter, ledger, settings }: ManagerNodeConfig): Promise<void> {
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
          const options: ManagerOptions = {
            ...{ self: ledger.name, datacenter, boot, version },
            managers: sitesOf(ledger).map(({ node }) => node),
            addresses: addressesOf(ledger),
            machine: this.#handlers.machine,
            errorKinds: ERROR_KINDS,
            config: managerConfig(settings),
          };
          const manager = new Manager(
            options,
            groupsIn(() => machine.node),
          );
          this.#manager = manager;
          this.#process = new ManagerProcess({ ...options, codeFrom }, machine, manager);
          return this.#process;
        },
        isDraining: () => this.#manager?.isDraining ?? false,
        problem: () => {
          const problem = this.#process?.diskProblem ?? null;
          return problem === null ? null : `results cannot be stored here: ${problem}`;
        },
        metrics: () => [
          ...pressureMetrics(this.#process?.pressure ?? null),
          ...(this.#manager === null ? [] : timeoutMetrics("manager", this.#manager.timeouts)),
          ...(this.#manager === null ? [] : healthMetrics(this.#manager.health)),
          diskMetric(this.#process?.diskProblem ?? null),
          ...(this.#manager === null ? [] : workflowMetrics(this.#manager.workflows)),
        ],
        run: (effect) => {
          // Managers call no datacenters.
          if (effect.kind !== "toDatacenter" && effect.kind !== "report") this.#run(effect);
        },
      },
    });
    this.#ledger.tell({ kind: "blobsHeld", hashes: this.#blobs.hashes });
    background.every("pressure", PRESSURE_EVERY_MS, () => this.#measure());
  }

  #run(effect: AboveEffect): void {
    const { background, log } = this.#handlers;
    const [blobs, uploads] = [this.#blobs, this.#uploads];
    const tell = (input: AboveInput): void => this.#ledger?.tell(input);
    runBlobs(effect, { blobs, uploads, background, log, tell });
  }
}

export function managerConfig(settings: ManagerNodeConfig["settings"]): ManagerConfig {
  return {
    workerTimeoutMs: settings.workerTimeout,
    rejoinMs: MANAGER_DEFAULTS.rejoinMs,
    lostWorkerMs: settings.deadWorkerReap,
    loadTimeoutMs: settings.loadTimeout,
    shareKeptMs: settings.lostShareWait,
    orderRetryMs: settings.orderRetry,
    orderTimeoutMs: settings.orderTimeout,
    proposeRetryMs: settings.proposeRetry,
    processesPerCoreMax: settings.processesPerCore,
    queuedPerCoreMax: settings.queuedPerCore,
    quotas: {
      coresPerTenantMax: settings.coresPerTenant,
      coresPerJobMax: settings.coresPerJob,
      waitingPerTenantMax: settings.waitingPerTenant,
    },
    timeouts: { stuckMs: settings.stuckJob, gateSilentMs: settings.gateSilence },
  };
}
