/**
 * One group of three replicas at a simulated round trip of 80 ms: commits per second allowed by the window, and by the
 * processor. Time is virtual (messages take 40 ms, a sync 1 ms); the cost is this process's own CPU time for all three
 * replicas together, without codecs or sockets.
 *
 *     npm run bench:vsr [-- seconds of virtual time]
 */

import { millis } from "../../src/core/base/brand.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import { nodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import { VSR_DEFAULTS } from "../../src/core/ledger/group/config.ts";
import { Replica } from "../../src/core/ledger/group/replica.ts";
import type { Operation, VsrEffect, VsrInput } from "../../src/core/ledger/group/types.ts";

const ONE_WAY_MS = 40;
const SYNC_MS = 1;
const TURN_MS = 1;
const DATA = new Uint8Array(64);
const COMPACT_EVERY = 4_096;

interface Event {
  readonly at: number;
  readonly node: number;
  readonly input: VsrInput;
}

/** Replicas on a network of constant delay: two queues, one per delay, are always in order. */
class Cluster {
  readonly #ids: readonly NodeId[];
  readonly #replicas: readonly Replica[];
  readonly #appended: number[];
  readonly #flights: Event[] = [];
  readonly #syncs: Event[] = [];
  #flightHead = 0;
  #syncHead = 0;
  now = 0;
  committed = 0;
  readonly #batched: boolean;

  constructor(windowEntries: number, batched: boolean) {
    this.#batched = batched;
    this.#ids = ["a", "b", "c"].map(nodeId);
    const config = { ...VSR_DEFAULTS, windowEntries };
    const origin = { kind: "founded", members: this.#ids } as const;
    this.#appended = this.#ids.map(() => 0);
    this.#replicas = this.#ids.map((self) => new Replica({ self, config }, origin, new Random(1)));
    this.#replicas.forEach((replica, node) => {
      this.#take(node, replica.start(millis(0)));
    });
  }

  /** One millisecond: due messages arrive, then the primary fills its window. */
  turn(sequence: number): number {
    this.now += TURN_MS;
    this.#syncHead = this.#run(this.#syncs, this.#syncHead);
    this.#flightHead = this.#run(this.#flights, this.#flightHead);
    this.#replicas.forEach((replica, node) => {
      if ((replica.nextDeadline() ?? this.now + 1) <= this.now) this.#step(node, { kind: "tick" });
    });
    const primary = this.#replicas[0];
    const room = primary?.room ?? 0;
    const operations = Array.from({ length: room }, (_, index) => operation(sequence + index));
    if (this.#batched && room > 0) this.#step(0, { kind: "propose", operations });
    else for (const one of operations) this.#step(0, { kind: "propose", operations: [one] });
    return room;
  }

  #run(queue: Event[], head: number): number {
    let next = head;
    for (;;) {
      const event = queue[next];
      if (event === undefined || event.at > this.now) break;
      next++;
      this.#step(event.node, event.input);
    }
    if (next < 8_192) return next;
    queue.splice(0, next);
    return 0;
  }

  #step(node: number, input: VsrInput): void {
    const replica = this.#replicas[node];
    if (replica !== undefined) this.#take(node, replica.step(input, millis(this.now)));
  }

  #take(node: number, effects: readonly VsrEffect[]): void {
    const before = this.#appended[node] ?? 0;
    let appended = before;
    for (const effect of effects) {
      if (effect.kind === "persist") appended++;
      else if (effect.kind === "send") {
        const from = this.#ids[node] as NodeId;
        const input = { kind: "message", from, message: effect.message } as const;
        this.#flights.push({
          at: this.now + ONE_WAY_MS,
          node: this.#ids.indexOf(effect.to),
          input,
        });
      } else if (effect.kind === "committed") this.#onCommitted(node, effect.entry.seq);
    }
    this.#appended[node] = appended;
    if (appended === before) return;
    this.#syncs.push({ at: this.now + SYNC_MS, node, input: { kind: "durable", count: appended } });
  }

  #onCommitted(node: number, seq: number): void {
    if (node === 0) this.committed++;
    if (seq % COMPACT_EVERY !== 0 || seq === 0) return;
    // A checkpoint in the next turn, so that the log stays short.
    const snapshot = { seq, bytes: DATA };
    this.#syncs.push({ at: this.now + SYNC_MS, node, input: { kind: "compact", snapshot } });
  }
}

function operation(sequence: number): Operation {
  return { eventId: `event-${sequence}`, wall: sequence, logical: 0, data: DATA };
}

function measure(windowEntries: number, seconds: number, batched: boolean): void {
  const cluster = new Cluster(windowEntries, batched);
  let sequence = 0;
  const turns = (span: number): void => {
    for (let turn = 0; turn < span * 1_000; turn++) sequence += cluster.turn(sequence);
  };
  turns(3);
  const before = cluster.committed;
  const started = process.cpuUsage();
  turns(seconds);
  const { user, system } = process.cpuUsage(started);
  const commits = cluster.committed - before;
  const cpuSeconds = (user + system) / 1e6;
  const byWindow = Math.round(commits / seconds);
  const byCpu = Math.round(commits / cpuSeconds);
  const each = ((cpuSeconds / commits) * 1e6).toFixed(1);
  const how = batched ? "together" : "one by one";
  console.log(
    `window ${String(windowEntries).padStart(5)}, proposed ${how.padEnd(10)}: ` +
      `${byWindow} commits/s in virtual time, ${each} us CPU each, ${byCpu} commits/s of CPU`,
  );
}

const seconds = Number(process.argv[2] ?? 20);
for (const windowEntries of [1_024, 2_048, 4_096]) {
  measure(windowEntries, seconds, true);
  measure(windowEntries, seconds, false);
}
