/**
 * Programs that watch jobs through one node after the other: with little credit, with pauses, over crashes of the
 * nodes, always continuing at the last index they have seen.
 *
 *   O1  a watcher receives each event of every job once, in order, as the log has it, or a notice that it
 *       was missed
 *   L5  after healing a watcher receives all that its node has
 */

import type { Random } from "../../src/core/base/random.ts";
import type { GroupId } from "../../src/core/ledger/group/messages.ts";
import type { JobId } from "../../src/core/ledger/job/job-id.ts";
import type { WatchItem } from "../../src/core/ledger/node/watch.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { LedgerCheckers } from "./checkers.ts";
import type { LedgerProcess } from "./node.ts";

const WATCHERS = 2;
const ROOM_MAX = 6;
const SLOW_MS_MAX = 3_000;
const MOVE_MS_MAX = 60_000;

interface Surroundings {
  readonly world: World;
  readonly processes: readonly LedgerProcess[];
  readonly checkers: LedgerCheckers;
  readonly violations: Violations;
}

interface Watcher {
  readonly name: string;
  readonly random: Random;
  readonly places: Map<JobId, number>;
  at: { readonly process: LedgerProcess; readonly token: number } | null;
}

export class LedgerWatchers {
  readonly #around: Surroundings;
  readonly #watchers: readonly Watcher[];

  constructor(around: Surroundings, random: Random) {
    this.#around = around;
    this.#watchers = Array.from({ length: WATCHERS }, (_, index) => ({
      name: `watcher ${index}`,
      random: random.fork(`watcher/${index}`),
      places: new Map(),
      at: null,
    }));
  }

  start(): void {
    for (const watcher of this.#watchers) this.#begin(watcher);
  }

  /** At any node that serves, from where it has come. */
  #begin(watcher: Watcher): void {
    const { processes } = this.#around;
    const { random, places } = watcher;
    const process = random.pick(processes.filter(({ state }) => state !== "corrupt"));
    const after = [...places].map(([jobId, seq]) => ({ jobId, seq }));
    const scope = { kind: "jobs", prefix: "" } as const;
    const room = 1 + random.below(ROOM_MAX);
    let open = true;
    const end = (pauseMs: number): void => {
      if (!open) return;
      open = false;
      watcher.at = null;
      this.#after(random.float() * pauseMs, () => this.#begin(watcher));
    };
    const token = process.watch({ scope, after, since: "start" }, room, (items) => {
      if (!open) return;
      // A draining node redirects new clients to another.
      if (items === null || items.some(isGoing)) {
        end(SLOW_MS_MAX);
        return;
      }
      for (const item of items) this.#see(watcher, process, item);
      const slowMs = random.chance(0.8) ? 0 : random.float() * SLOW_MS_MAX;
      this.#after(slowMs, () => {
        if (open) process.makeRoom(token, items.length);
      });
    });
    if (token === 0) {
      end(SLOW_MS_MAX);
      return;
    }
    watcher.at = { process, token };
    this.#after(random.float() * MOVE_MS_MAX, () => {
      if (open) process.endWatch(token);
      end(0);
    });
  }

  #after(delayMs: number, run: () => void): void {
    const { world } = this.#around;
    world.schedule(world.now + delayMs, "step", 0, run);
  }

  #see({ name, places }: Watcher, process: LedgerProcess, item: WatchItem): void {
    const { checkers, violations } = this.#around;
    if (item.kind === "refused") violations.report("O1", `${process.id} refuses ${name}`);
    if (item.kind !== "event" && item.kind !== "behind") return;
    const { jobId, seq } = item;
    const before = places.get(jobId) ?? -1;
    places.set(jobId, seq);
    checkers.marks.add(`watch.${item.kind}`);
    violations.check(seq > before, "O1", () => {
      return `${process.id} tells ${name} of ${seq} of ${jobId} after ${before}`;
    });
    if (item.kind === "behind") return;
    const { entries, outcomes } = checkers.truth(jobId as string as GroupId);
    const entry = entries[seq];
    const first = outcomes.get(item.event.eventId);
    const same =
      entry?.eventId === item.event.eventId &&
      entry.view === item.view &&
      first?.seq === seq &&
      first.outcome === item.outcome;
    violations.check(same, "O1", () => {
      const what = `${item.event.eventId} (view ${item.view}, ${item.outcome})`;
      return `${process.id} tells ${name} that ${seq} of ${jobId} is ${what}: it is not`;
    });
    const missed = entries.slice(before + 1, seq).find((one) => {
      return one.kind === "op" && outcomes.get(one.eventId)?.seq === one.seq;
    });
    violations.check(missed === undefined, "O1", () => {
      return `${process.id} tells ${name} of ${seq} of ${jobId} and not of ${missed?.seq}`;
    });
  }

  /** L5: returns a watcher that has not yet received everything its node has. */
  missing(): string | null {
    for (const { name, places, at } of this.#watchers) {
      const groups = at?.process.node?.groups.values() ?? [];
      for (const { app, id } of groups) {
        if (app.kind !== "job") continue;
        const seen = places.get(id as string as JobId) ?? -1;
        if (seen < app.state.changedSeq) return `${name} has seen ${seen} of ${id}`;
      }
    }
    return null;
  }
}

function isGoing(item: WatchItem): boolean {
  return item.kind === "refused" && item.why.includes("going down");
}
