/**
 * A gate as a process: the ledger node that gates replicate with, the gate on top of it, its links to the managers of
 * every datacenter, and the files of jobs on disk.
 */

import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { Random } from "../../core/base/random.ts";
import { Gate } from "../../core/cluster/gate/gate.ts";
import { lookupIn } from "../../core/cluster/gate/lookup.ts";
import { identityOfSpec, redactSpec } from "../../core/cluster/gate/spec.ts";
import type { GateConfig } from "../../core/cluster/gate/types.ts";
import { ClientProcess } from "../../core/cluster/node/client-process.ts";
import { type DatacenterLinks, GateProcess } from "../../core/cluster/node/gate-process.ts";
import type { LedgerMachine } from "../../core/cluster/node/ledger-machine.ts";
import type { Background } from "../../host/background.ts";
import { BlobStore } from "../../host/blob-store.ts";
import { deflate } from "../../host/deflate.ts";
import type { AuditRequester, OpenAudit } from "../../host/ports/audit.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log } from "../../host/ports/log.ts";
import { PRESSURE_EVERY_MS, PressureMeter } from "../../host/pressure.ts";
import { StreamDriver } from "../../host/stream-driver.ts";
import { TcpPort } from "../../host/tcp.ts";
import { sitesOf } from "../../ledger/config.ts";
import { LedgerHost } from "../../ledger/host.ts";
import { peersOptions, readRing } from "../../ledger/network.ts";
import { ERROR_KINDS } from "../../protocols/protocol.ts";
import { CAPABILITIES } from "../../wire/version.ts";
import { addressesOf } from "../manager/addresses.ts";
import { runBlobs } from "../manager/blob-effects.ts";
import { pressureMetrics } from "../manager/pressure-metrics.ts";
import { timeoutMetrics } from "../manager/timeout-metrics.ts";
import { Uploads } from "../manager/uploads.ts";
import { callsMetrics } from "./calls-metrics.ts";
import type { GateNodeConfig } from "./config.ts";
import { federatedMetrics } from "./federated-metrics.ts";
import { gateMetrics } from "./gate-metrics.ts";
import { GateReports, REPORT_LOOK_MS } from "./gate-reports.ts";
import { routingMetrics } from "./routing-metrics.ts";

interface GateHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  readonly openAudit: () => Promise<OpenAudit>;
  readonly version: string;
  readonly onFatal: (reason: string, error: unknown) => void;
}

type AboveRun = NonNullable<Parameters<typeof LedgerHost.start>[1]["above"]>["run"];

export class GateHost {
  readonly #config: GateNodeConfig;
  readonly #handlers: GateHandlers;
  readonly #blobs: BlobStore;
  readonly #uploads: Uploads;
  /** Links to the managers of each datacenter; accepts no connections. */
  readonly #port = TcpPort.dialer(null);
  readonly #streams: ReadonlyMap<string, StreamDriver>;
  readonly #meter = new PressureMeter();
  readonly #reports: GateReports;
  #ledger: LedgerHost | null = null;
  #process: GateProcess | null = null;
  #gate: Gate | null = null;

  private constructor(config: GateNodeConfig, blobs: BlobStore, handlers: GateHandlers) {
    this.#config = config;
    this.#handlers = handlers;
    this.#blobs = blobs;
    this.#uploads = new Uploads(blobs);
    this.#reports = new GateReports(config.reports, { env: process.env, log: handlers.log });
    this.#streams = new Map(
      config.datacenters.map(({ name: datacenter }) => [
        datacenter,
        new StreamDriver(this.#port, (input) =>
          this.#ledger?.tell({ kind: "ofDatacenter", datacenter, input }),
        ),
      ]),
    );
  }

  /** Resolves when the node has recovered and serves. Rejects with what is wrong, sockets closed. */
  static async start(config: GateNodeConfig, handlers: GateHandlers): Promise<GateHost> {
    const { dataDir } = config.ledger;
    let host: GateHost | null = null;
    const blobs = await BlobStore.open(join(dataDir, "blobs"), {
      bytesMax: config.settings.blobStore,
      onGone: (hash) => host?.tellGone(hash),
    });
    host = new GateHost(config, blobs, handlers);
    await host.#start();
    return host;
  }

  tellGone(hash: string): void {
    this.#ledger?.tell({ kind: "blobsGone", hashes: [hash] });
  }

  get encryption(): string {
    return this.#ledger?.encryption ?? "";
  }

  /** Lets others lead and what is under way finish, writes a checkpoint, ends. */
  async stop(requester: AuditRequester): Promise<void> {
    await this.#ledger?.stop(requester);
    await this.#reports.close();
    await this.#port.close();
  }

  #measure(): void {
    const queue = this.#ledger?.logFill ?? 0;
    this.#ledger?.tell({ kind: "pressure", ...this.#meter.take(), queue });
  }

  reloadKeys(requester: AuditRequester): void {
    this.#ledger?.reloadKeys(requester);
  }

  async #start(): Promise<void> {
    const { background, clock, log, onFatal, openAudit, version } = this.#handlers;
    await this.#reports.check();
    this.#ledger = await LedgerHost.start(this.#config.ledger, {
      ...{ clock, log, background, openAudit, version, onFatal },
      onEvent: () => undefined,
      identityOf: identityOfSpec,
      redactSpec,
      above: {
        compose: (machine) => this.#compose(machine),
        run: (effect) => this.#run(effect),
        metrics: () => [
          ...pressureMetrics(this.#process?.pressure ?? null),
          ...(this.#gate === null ? [] : timeoutMetrics("gate", this.#gate.timeouts)),
          ...routingMetrics(this.#gate?.routing ?? null),
          ...callsMetrics(this.#gate?.calls ?? null),
          ...gateMetrics(this.#gate?.gates ?? null),
          ...federatedMetrics(this.#gate?.federated ?? null),
          ...this.#reports.metrics(),
        ],
        isDraining: () => this.#gate?.isDraining ?? false,
        views: {
          datacenters: () => this.#gate?.datacenters ?? [],
          gates: () => this.#gate?.gates ?? null,
        },
      },
    });
    this.#ledger.tell({ kind: "blobsHeld", hashes: this.#blobs.hashes });
    background.every("pressure", PRESSURE_EVERY_MS, () => this.#measure());
    if (this.#reports.isWanted)
      background.every("reports", REPORT_LOOK_MS, () => this.#ledger?.tell({ kind: "report" }));
  }

  #compose(machine: LedgerMachine): GateProcess {
    const { datacenters, ledger } = this.#config;
    const { version } = this.#handlers;
    const gate = new Gate(
      {
        self: ledger.name,
        gates: sitesOf(ledger).map(({ node }) => node),
        boot: randomUUID().slice(0, 13),
        version,
        errorKinds: ERROR_KINDS,
        addresses: addressesOf(ledger),
        datacenters: datacenters.map(({ managers, name }) => ({
          name,
          managers: managers.map((one) => one.name),
        })),
        config: gateConfig(this.#config.settings),
      },
      lookupIn(machine.node),
    );
    this.#gate = gate;
    const { hello } = peersOptions(ledger, readRing(ledger, this.#handlers.log), version);
    const links = datacenters.map(
      ({ managers, name }): DatacenterLinks => ({
        ...{ name, managers },
        client: new ClientProcess(
          {
            hello: { ...hello, capabilities: CAPABILITIES },
            managers: managers.map(({ address }) => address),
            ring: readRing(ledger, this.#handlers.log),
            entropy: randomBytes,
            compressor: deflate,
          },
          new Random(randomUUID()),
        ),
      }),
    );
    const addresses = Object.values(addressesOf(ledger));
    const self = { name: ledger.name, addresses, codeFrom: this.#config.codeFrom };
    this.#process = new GateProcess(self, machine, gate, links);
    return this.#process;
  }

  #run(effect: Parameters<AboveRun>[0]): void {
    if (effect.kind === "toDatacenter") this.#streams.get(effect.datacenter)?.run(effect.effect);
    else if (effect.kind === "report") this.#reports.take(effect.report);
    else
      runBlobs(effect, {
        ...{
          blobs: this.#blobs,
          uploads: this.#uploads,
          tell: (input) => this.#ledger?.tell(input),
        },
        ...{ background: this.#handlers.background, log: this.#handlers.log },
      });
  }
}

export function gateConfig(settings: GateNodeConfig["settings"]): GateConfig {
  return {
    askTimeoutMs: settings.askTimeout,
    capacityMs: settings.capacityInterval,
    silenceMs: settings.datacenterSilence,
    observeMs: settings.observeInterval,
    startLeadMs: settings.startLead,
    queuedMs: settings.queuedElsewhere,
    lostMs: settings.datacenterLost,
    allStuckMs: settings.allStuck,
    wakeMs: settings.wakeInterval,
  };
}
