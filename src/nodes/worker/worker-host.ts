/**
 * A worker as a process: its machine in the loop, over real connections, files and executor processes.
 *
 *     network, executor processes, disk ─▶ Loop ─▶ WorkerProcess ─▶ effects ─▶ the same
 */

import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { assertNever } from "../../core/base/assert.ts";
import { errorText } from "../../core/base/error-text.ts";
import { Random } from "../../core/base/random.ts";
import type { RelayedCommand } from "../../core/cluster/messages.ts";
import {
  WorkerProcess,
  type WorkerProcessEffect,
  type WorkerProcessInput,
} from "../../core/cluster/node/worker-process.ts";
import { CorePool } from "../../engine/core-pool.ts";
import { type CoreProcess, coreEntry } from "../../engine/core-process.ts";
import type { Background } from "../../host/background.ts";
import { BlobStore, WRONG_CONTENT } from "../../host/blob-store.ts";
import { deflate } from "../../host/deflate.ts";
import {
  asUser,
  type ExecutorRights,
  executorRights,
  rightsText,
} from "../../host/executor-user.ts";
import { makeFolder } from "../../host/folders.ts";
import { type Driven, Loop } from "../../host/loop.ts";
import { nodeAead } from "../../host/node-aead.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log } from "../../host/ports/log.ts";
import { GROUP_LEADER } from "../../host/process-group.ts";
import { warnOfExposure } from "../../host/secret-exposure.ts";
import { StreamDriver } from "../../host/stream-driver.ts";
import { TcpPort } from "../../host/tcp.ts";
import { type DirectoryLock, lockDirectory } from "../../ledger/log/lock.ts";
import { ERROR_KINDS } from "../../protocols/protocol.ts";
import { KeyRing } from "../../wire/key-ring.ts";
import { spoken } from "../../wire/version.ts";
import type { WorkerNodeConfig } from "./config.ts";
import { eventProblem } from "./core-events.ts";
import { JobFolders } from "./job-folder.ts";
import { Promises } from "./promises.ts";

/** Time for load to stop and its last metrics to be accepted, when the jobs here did not finish in time. */
const LEAVE_MS_MAX = 5_000;

interface WorkerHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  readonly version: string;
  /** The process must end: an invariant broke, or its promises cannot be kept. */
  readonly onFatal: (reason: string, error: unknown) => void;
}

interface Parts {
  /** Two workers with one directory would share a name and its promises. */
  readonly lock: DirectoryLock;
  readonly promises: Promises;
  readonly blobs: BlobStore;
  readonly folders: JobFolders;
  readonly rights: ExecutorRights;
}

type LookUpEffect = Extract<WorkerProcessEffect, { kind: "lookUp" }>;
type Opened = Extract<WorkerProcessEffect, { kind: "open" }>;

export interface WorkerStatus {
  readonly name: string;
  readonly incarnation: number;
  readonly cores: number;
  readonly usedProcesses: number;
  readonly warmProcesses: number;
  readonly draining: boolean;
  readonly jobs: readonly string[];
  /** User that the code of jobs runs as, as text. */
  readonly jobCode: string;
  readonly cacheBytes: number;
  /** Delay between two messages of metrics, as requested by overloaded managers. */
  readonly figuresDelayMs: number;
  /** Requests, cores to open, and news that no manager has confirmed. */
  readonly queued: number;
  readonly degradation: WorkerProcess["degradation"];
  readonly managers: readonly { readonly name: string; readonly up: boolean }[];
}

export class WorkerHost {
  readonly config: WorkerNodeConfig;
  readonly #handlers: WorkerHandlers;
  readonly #parts: Parts;
  readonly #machine: WorkerProcess;
  readonly #port: TcpPort;
  readonly #loop: Loop;
  readonly #driven: Driven<WorkerProcessInput>;
  readonly #streams: StreamDriver;
  readonly #pool: CorePool;
  readonly #cores = new Map<number, CoreProcess>();
  /** Ended before their process was there. */
  readonly #unopened = new Set<number>();
  #onDrained: () => void = () => undefined;
  #upOnce: () => void = () => undefined;

  private constructor(config: WorkerNodeConfig, handlers: WorkerHandlers, parts: Parts) {
    this.config = config;
    this.#handlers = handlers;
    this.#parts = parts;
    this.#port = TcpPort.dialer(null);
    const { clock, onFatal } = handlers;
    this.#loop = new Loop(clock, (error) => onFatal("an invariant of the worker is broken", error));
    this.#machine = new WorkerProcess(this.#options(), new Random(randomUUID()));
    this.#driven = this.#loop.add(this.#machine, { kind: "tick" }, (effect) => this.#run(effect));
    this.#streams = new StreamDriver(this.#port, (input) => this.#driven.push(input));
    this.#pool = new CorePool(config.cores, { ...asUser(parts.rights.user), ...GROUP_LEADER });
  }

  /** Resolves when one manager has taken it in. */
  static async start(config: WorkerNodeConfig, handlers: WorkerHandlers): Promise<WorkerHost> {
    await makeFolder(config.dataDir, { mode: 0o700 });
    const lock = await lockDirectory(config.dataDir);
    const promises = await Promises.open(config.dataDir);
    const bytesMax = config.settings.cache;
    const blobs = await BlobStore.open(join(config.dataDir, "blobs"), { bytesMax });
    const rights = executorRights({ name: config.executorUser, program: coreEntry() });
    const folders = await JobFolders.open(config.dataDir, blobs, rights.user);
    warnOfExposure(config.secretFile, handlers.log);
    const host = new WorkerHost(config, handlers, { lock, promises, blobs, folders, rights });
    await new Promise<void>((resolve) => {
      host.#upOnce = resolve;
      host.#driven.push({ kind: "start" });
    });
    return host;
  }

  /** As whom the code of jobs runs. */
  get rights(): ExecutorRights {
    return this.#parts.rights;
  }

  get encryption(): string {
    return this.#machine.encryption;
  }

  get ready(): boolean {
    return this.#machine.managers().some(({ up }) => up) && !this.isDraining;
  }

  get isDraining(): boolean {
    return this.#machine.worker.draining;
  }

  status(): WorkerStatus {
    const { worker } = this.#machine;
    return {
      name: this.config.name,
      incarnation: this.#parts.promises.incarnation,
      cores: this.config.cores,
      usedProcesses: worker.usedCores,
      warmProcesses: this.#pool.warm,
      draining: worker.draining,
      jobs: worker.jobs,
      jobCode: rightsText(this.#parts.rights),
      cacheBytes: this.#parts.blobs.bytes,
      figuresDelayMs: worker.figuresDelayMs(this.#handlers.clock.now()),
      queued: this.#machine.queued,
      degradation: this.#machine.degradation,
      managers: this.#machine.managers().map(({ name, up }) => ({ name, up })),
    };
  }

  /** Waits for the jobs that run here, within the configured time; then stops. */
  async stop(): Promise<void> {
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
    this.#driven.push({ kind: "drain" });
    const { background } = this.#handlers;
    const isDrained = drained.then(() => true);
    const late = background.pause(this.config.settings.drainDeadline).then(() => false);
    if (!(await Promise.race([isDrained, late]))) {
      this.#driven.push({ kind: "leave" });
      await Promise.race([drained, background.pause(LEAVE_MS_MAX)]);
    }
    this.#loop.stop();
    await this.#pool.close();
    await Promise.all([...this.#cores.values()].map((core) => core.end()));
    await this.#port.close();
    await this.#parts.folders.close();
    await this.#parts.lock.release();
  }

  #options(): ConstructorParameters<typeof WorkerProcess>[0] {
    const { config } = this;
    const { name, datacenter, cluster, environment, cores, managers, settings } = config;
    const { incarnation, views } = this.#parts.promises;
    const { version } = this.#handlers;
    const made = KeyRing.create(nodeAead, config.readSecrets(), `${cluster}/${environment}`);
    if (!made.ok) throw new Error(made.problem);
    return {
      worker: {
        name,
        incarnation,
        cores,
        version,
        isolationMs: settings.isolation,
        errorKinds: ERROR_KINDS.length,
        boot: randomUUID(),
        executorUser: this.#parts.rights.user?.name ?? "",
      },
      views,
      managers,
      hello: {
        ...{ cluster, environment, datacenter, node: name, role: "worker", address: "" },
        ...spoken(settings.protocolMinor),
        nodeVersion: version,
      },
      ring: made.ring,
      entropy: randomBytes,
      compressor: deflate,
    };
  }

  #run(effect: WorkerProcessEffect): void {
    const { background, log } = this.#handlers;
    switch (effect.kind) {
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        this.#streams.run(effect);
        return;
      case "endCore":
        this.#end(effect.slot, effect.kill);
        return;
      case "lookUp":
        background.run("look for files", () => this.#lookUp(effect));
        return;
      case "keep": {
        const { bytes, hash, job } = effect;
        background.run("keep a file", async () => {
          const problem = await this.#parts.blobs.keep(hash, bytes);
          const isDamaged = problem === WRONG_CONTENT;
          this.#driven.push({ kind: "kept", job, hash, problem, isDamaged });
        });
        return;
      }
      case "open":
        background.run("open cores", () => this.#open(effect));
        return;
      case "command":
        this.#cores.get(effect.slot)?.send(effect.command satisfies RelayedCommand);
        return;
      case "closed":
        background.run("remove the files of a job", () => this.#parts.folders.remove(effect.job));
        return;
      case "keepViews":
        background.run("keep promises", () => this.#keep(effect.views));
        return;
      case "log":
        log.event(effect.level, effect.event, effect.fields);
        if (effect.event === "manager.up") this.#upOnce();
        return;
      case "drained":
        this.#onDrained();
        return;
      default:
        assertNever(effect);
    }
  }

  /** Checks which files are stored; corrupt ones are fetched again. */
  async #lookUp({ files, job }: LookUpEffect): Promise<void> {
    const missing: (typeof files)[number][] = [];
    for (const file of files) if (!(await this.#parts.blobs.isWhole(file.hash))) missing.push(file);
    this.#driven.push({ kind: "lookedUp", job, missing });
  }

  async #keep(views: Parameters<Promises["keep"]>[0]): Promise<void> {
    try {
      await this.#parts.promises.keep(views);
      this.#driven.push({ kind: "viewsKept" });
    } catch (error) {
      this.#handlers.onFatal("a promise cannot be kept on disk", error);
    }
  }

  async #open({ job, opened, order }: Opened): Promise<void> {
    const laid = await this.#parts.folders.layOut(job, order).catch((error: unknown) => {
      const what = `the files of the job cannot be laid out: ${errorText(error)}`;
      for (const { slot } of opened) this.#driven.push({ kind: "coreGone", slot, what });
      return null;
    });
    if (laid === null) return;
    for (const { core, slot } of opened) {
      if (this.#unopened.delete(slot)) continue;
      const process = this.#pool.take({
        onEvent: (event) => {
          const problem = eventProblem(event);
          if (problem === null) this.#driven.push({ kind: "core", slot, event });
          else this.#reject(slot, problem);
        },
        onLost: (what) => {
          this.#cores.delete(slot);
          this.#driven.push({ kind: "coreGone", slot, what });
        },
      });
      this.#cores.set(slot, process);
      const { overrides } = order;
      const { address: bundle, folder } = laid;
      process.send({ kind: "load", bundle, folder, overrides, core });
    }
  }

  /** Kills a core whose job code sent what no core sends; its loss is reported as any other. */
  #reject(slot: number, problem: string): void {
    this.#handlers.log.event("warn", "core.rejected", { slot, problem });
    this.#cores.get(slot)?.kill();
  }

  #end(slot: number, kill: boolean): void {
    const core = this.#cores.get(slot);
    if (core === undefined) {
      this.#unopened.add(slot);
      this.#driven.push({ kind: "coreGone", slot, what: null });
      return;
    }
    if (kill) {
      core.kill();
      return;
    }
    this.#cores.delete(slot);
    this.#handlers.background.run("end a core", async () => {
      await core.end();
      this.#driven.push({ kind: "coreGone", slot, what: null });
    });
  }
}
