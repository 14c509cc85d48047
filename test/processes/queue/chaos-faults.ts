/**
 * Faults of the nodes in the chaos run. Every node reaches the database through a relay, and nodes that may lead are
 * reached through one, so that connections can go silent without being closed.
 */

import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../../src/core/base/random.ts";
import { freePort, type Relay, relayTo } from "../ledger/relay.ts";
import { fastEnvironment, NodeProcess } from "./fixtures.ts";

export type FaultKind =
  | "kill"
  | "stop"
  /** The node's connections to the database are silent. */
  | "database unreachable"
  /** Connections of those who ask it are silent. */
  | "leader unreachable"
  | "database crash";

export interface ChaosLeases {
  readonly taskLeaseMs: number;
  readonly leaderLeaseMs: number;
}

/** Times are of the wall clock, as the database's. */
export interface Fault {
  readonly kind: FaultKind;
  /** The node; null for all of them. */
  readonly nodeId: string | null;
  readonly led: boolean;
  readonly from: number;
  to: number;
}

/** A stalled or unreachable node returns after its work was given to another. */
const LONG_SHARE = 1.5;
const SHORT_SILENCE_MS = 6_000;
const RESTART_MS = 1_000;

function environmentOf({ taskLeaseMs, leaderLeaseMs }: ChaosLeases): Record<string, string> {
  return {
    ...fastEnvironment,
    HYPERSCALE_LEASE_DURATION_SECONDS: String(taskLeaseMs / 1_000),
    HYPERSCALE_LEADER_LEASE_SECONDS: String(leaderLeaseMs / 1_000),
    HYPERSCALE_LEADER_RENEW_SECONDS: String(leaderLeaseMs / 3_500),
  };
}

interface SlotOptions {
  readonly name: string;
  readonly databasePort: number;
  /** The database's address for a port. */
  readonly databaseAt: (port: number) => string;
  readonly executors: string;
  /** Slots of a worker; null for a node that leads or waits to. */
  readonly parallel: number | null;
  readonly leases: ChaosLeases;
  /** Where each process writes what it warns of; undefined for nowhere. */
  readonly logsDirectory: string | undefined;
}

/** Where others reach a node, by a relay, and where it listens. */
interface Reached {
  readonly relay: Relay;
  readonly port: number;
  readonly at: number;
}

/** A slot for one process after the other, each under its own id. */
export class Slot {
  readonly #options: SlotOptions;
  readonly #database: Relay;
  readonly #databasePort: number;
  /** How others reach it, when it may lead. */
  readonly #own: Reached | null;
  /** Processes that exited unexpectedly. */
  readonly crashes: string[] = [];
  #node: NodeProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #started = 0;
  /** Whether a fault is in progress; no other is injected meanwhile. */
  #isHurt = false;

  private constructor(
    options: SlotOptions,
    database: readonly [Relay, number],
    own: Reached | null,
  ) {
    this.#options = options;
    [this.#database, this.#databasePort] = database;
    this.#own = own;
  }

  static async open(options: SlotOptions): Promise<Slot> {
    const database = await relayTo(options.databasePort);
    if (options.parallel !== null) return new Slot(options, database, null);
    const at = await freePort();
    const [relay, port] = await relayTo(at);
    return new Slot(options, database, { relay, port, at });
  }

  get node(): NodeProcess | undefined {
    return this.#node;
  }

  get nodeId(): string {
    return `${this.#options.name}-${this.#started}`;
  }

  get isHurt(): boolean {
    return this.#isHurt;
  }

  start(): void {
    const { databaseAt, executors, parallel } = this.#options;
    this.#started++;
    const own = this.#own;
    const reached =
      own === null
        ? ["--role", "worker", "--executors", executors, "--max-parallel", String(parallel)]
        : [
            ...["--max-parallel", "0", "--listen", `127.0.0.1:${own.at}`],
            ...["--advertise", `http://127.0.0.1:${own.port}`],
          ];
    const database = ["--database", databaseAt(this.#databasePort)];
    const args = [...database, "--node-id", this.nodeId, "--log-level", "warn", ...reached];
    const { leases, logsDirectory } = this.#options;
    this.#node = new NodeProcess(args, environmentOf(leases));
    this.#supervise(this.#node);
    if (logsDirectory === undefined) return;
    this.#node.child.stderr?.pipe(createWriteStream(join(logsDirectory, `${this.nodeId}.log`)));
  }

  /** A node that cannot start because its database is unavailable is restarted, as by a supervisor. */
  #supervise(node: NodeProcess): void {
    const { nodeId } = this;
    let wasReady = false;
    node.ready.then(
      () => {
        wasReady = true;
      },
      () => undefined,
    );
    node.child.once("exit", () => {
      if (this.#node !== node) return;
      this.#node = undefined;
      if (wasReady) this.crashes.push(`${nodeId} ended by itself: ${node.stderr.slice(-500)}`);
      this.#restart = setTimeout(() => this.start(), RESTART_MS);
    });
  }

  async kill(): Promise<void> {
    await this.#endNode();
    this.start();
  }

  async #endNode(): Promise<void> {
    const node = this.#node;
    this.#node = undefined;
    clearTimeout(this.#restart);
    await node?.end("SIGKILL");
  }

  /** Pauses the process, and resumes it unchanged. */
  async stop(led: boolean): Promise<void> {
    const node = this.#node;
    node?.signal("SIGSTOP");
    const { taskLeaseMs, leaderLeaseMs } = this.#options.leases;
    await sleep(led ? leaderLeaseMs * 2 : taskLeaseMs * LONG_SHARE);
    node?.signal("SIGCONT");
  }

  /** Whether it may lead. */
  get isReached(): boolean {
    return this.#own !== null;
  }

  /** Connections stay open and carry nothing: its own to the database, or those of its clients. */
  async silence(which: "database" | "own", long: boolean): Promise<void> {
    const relay = which === "own" ? this.#own?.relay : this.#database;
    relay?.freeze();
    await sleep(long ? this.#options.leases.taskLeaseMs * LONG_SHARE : SHORT_SILENCE_MS);
    relay?.heal();
  }

  async hurt(work: () => Promise<void>): Promise<void> {
    this.#isHurt = true;
    await work().finally(() => {
      this.#isHurt = false;
    });
  }

  async end(): Promise<void> {
    await this.#endNode();
    await Promise.all([this.#database.close(), this.#own?.relay.close()]);
  }
}

/** One fault of those that a node can have. */
export function hurtSlot(
  slot: Slot,
  led: boolean,
  random: Random,
): readonly [FaultKind, () => Promise<void>] {
  const dice = random.below(10);
  if (dice < 5) return ["kill", () => slot.kill()];
  if (dice < 7) return ["stop", () => slot.stop(led)];
  const long = random.chance(0.5);
  if (dice === 9 || !slot.isReached)
    return ["database unreachable", () => slot.silence("database", long)];
  return ["leader unreachable", () => slot.silence("own", long)];
}
