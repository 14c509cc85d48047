/**
 * Finds the leader when another node leads: looked up in the database, and cached for a while. A node whose database
 * does not answer keeps the leader it knows, which says itself when it no longer leads: leases are renewed while the
 * leader can be reached.
 */

import { performance } from "node:perf_hooks";
import { within } from "../host/timer.ts";
import type { RpcClient } from "./api/rpc-client.ts";
import type { LeaderPort } from "./api/types.ts";
import type { LeaderRow } from "./store/reader.ts";
import { RemoteLeader } from "./worker/remote-leader.ts";

/** How long a leader's address is cached before the database is read again. */
export const LEADER_BELIEVED_MS = 1_000;
/** Timeout of the database while there is a leader to fall back on. */
const LOOKUP_MS_MAX = 1_000;

interface FoundLeader {
  readonly rpc: RpcClient;
  readonly port: LeaderPort;
}

interface LeaderFinderOptions {
  /** Incarnation of this process: its own leadership is excluded here. */
  readonly run: string;
  readonly read: () => Promise<LeaderRow | null>;
  readonly connect: (url: string) => RpcClient;
}

export class LeaderFinder {
  readonly #options: LeaderFinderOptions;
  #found: FoundLeader | undefined;
  #believedUntil = 0;
  #lookup: Promise<FoundLeader | undefined> | undefined;

  constructor(options: LeaderFinderOptions) {
    this.#options = options;
  }

  find(): Promise<FoundLeader | undefined> {
    const known = this.#found;
    if (known !== undefined && performance.now() < this.#believedUntil)
      return Promise.resolve(known);
    this.#lookup ??= this.#lookUp().finally(() => {
      this.#lookup = undefined;
    });
    if (known === undefined) return this.#lookup;
    const late = (): Error => new Error("the database does not answer");
    return within(this.#lookup, LOOKUP_MS_MAX, late).catch(() => this.#found);
  }

  /** Aborts a call that waits at a former leader as soon as the change is known. */
  async notice(): Promise<void> {
    if (this.#found !== undefined) await this.find();
  }

  /** Drops a leader that said that it does not lead, or does not listen. */
  forget(former: FoundLeader): void {
    if (this.#found === former) this.#found = undefined;
    former.rpc.close();
  }

  close(): void {
    this.#found?.rpc.close();
  }

  async #lookUp(): Promise<FoundLeader | undefined> {
    const askedAt = performance.now();
    const row = await this.#options.read();
    if (row === null || !row.alive || row.url === null || row.run === this.#options.run)
      return undefined;
    this.#believedUntil = askedAt + LEADER_BELIEVED_MS;
    if (this.#found?.rpc.url === row.url) return this.#found;
    this.#found?.rpc.close();
    const rpc = this.#options.connect(row.url);
    this.#found = { rpc, port: new RemoteLeader(rpc) };
    return this.#found;
  }
}
