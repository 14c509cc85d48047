/**
 * Small scope, every schedule: three replicas, a few values, views and crashes, and all orders in which messages arrive
 * (or never do), disks sync, processes die and restart, and election timeouts fire.
 *
 * Two models of the network. Free: any message may arrive at any time, and the search goes as deep as its bound allows.
 * In rounds (`delays`): the messages of one act arrive in the order they were sent, each delivered or not, and a
 * bounded number arrives late, at any later time; that scope is small enough to be explored completely.
 *
 * Time stands still: a replica may time out on its primary at any time. A message that stays on the network for ever is
 * a lost one. Probes change nothing anywhere, so every probe counts as granted. Replica states and messages are
 * interned and every step of one replica is computed once, so the search mostly combines numbers.
 */

import { nodeId } from "../../src/core/base/ids.ts";
import type { VsrConfig } from "../../src/core/ledger/group/config.ts";
import { VSR_DEFAULTS } from "../../src/core/ledger/group/config.ts";
import type { VsrRules } from "../../src/core/ledger/group/rules.ts";
import { VSR_RULES } from "../../src/core/ledger/group/rules.ts";
import type { Act, Outcome } from "./explore-cells.ts";
import { Cells } from "./explore-cells.ts";
import { HashSet } from "./hash-set.ts";

export interface Scope {
  readonly members: number;
  readonly values: number;
  /** No replica runs for a view beyond this. */
  readonly views: number;
  readonly crashes: number;
  /** In rounds, with this many late messages; without it messages are free. */
  readonly delays?: number;
  /** Stops at this many states, and reports it. */
  readonly statesMax: number;
  readonly rules?: Partial<VsrRules>;
}

interface Exploration {
  readonly states: number;
  /** All schedules of fewer steps than this were seen. */
  readonly depth: number;
  readonly replicaStates: number;
  readonly messages: number;
  /** Every schedule within the scope was seen. */
  readonly complete: boolean;
  readonly violation: string | null;
  /** How it came about. */
  readonly trace: readonly string[];
}

const CONFIG: VsrConfig = {
  ...VSR_DEFAULTS,
  idleMs: Number.POSITIVE_INFINITY,
  leaseMs: 0,
  // Time stands still: requests are repeated at once, and commits are not marked on disk.
  retransmitMs: 0,
  renewMs: 1,
};

/** Committed entries: event and view of each index, with the view that committed it first. */
interface Ghost {
  readonly key: string;
  readonly committed: readonly string[];
  readonly committedIn: readonly number[];
  readonly primaries: readonly string[];
}

interface World {
  readonly cells: readonly number[];
  /** Interned messages on the network: ascending when they are free, in order of sending in rounds. */
  readonly network: readonly number[];
  /** In rounds: messages that come later, ascending, and how many more may. */
  readonly late: readonly number[];
  readonly delays: number;
  readonly ghost: Ghost;
  readonly proposed: number;
  readonly crashes: number;
  readonly parent: World | null;
  readonly by: readonly [number, Act] | null;
}

const EMPTY_GHOST: Ghost = { key: "", committed: [], committedIn: [], primaries: [] };

export function explore(scope: Scope): Exploration {
  const search = new Search(scope);
  return search.run();
}

class Search {
  readonly #scope: Scope;
  readonly #cells: Cells;
  readonly #seen = new HashSet();
  /** Breadth first: what is found is found by the shortest way. */
  #layer: World[] = [];
  #next: World[] = [];
  #violation: string | null = null;
  #culprit: World | null = null;

  constructor(scope: Scope) {
    this.#scope = scope;
    const members = Array.from({ length: scope.members }, (_, index) => nodeId(`n${index}`));
    const rules = { ...VSR_RULES, ...scope.rules };
    this.#cells = new Cells({ members, config: CONFIG, rules, viewsMax: scope.views });
  }

  run(): Exploration {
    const { statesMax } = this.#scope;
    this.#visit(this.#beginning());
    let states = 0;
    let depth = -1;
    while (this.#next.length > 0 && this.#violation === null && states < statesMax) {
      this.#layer = this.#next;
      this.#next = [];
      depth++;
      for (const world of this.#layer) {
        if (this.#violation !== null || states >= statesMax) break;
        states++;
        this.#expand(world);
      }
    }
    const complete = this.#next.length === 0 && this.#violation === null;
    const { cellCount, messageCount } = this.#cells;
    const counts = { states, depth, replicaStates: cellCount, messages: messageCount };
    return { ...counts, complete, violation: this.#violation, trace: this.#trace() };
  }

  #beginning(): World {
    const { members, crashes } = this.#scope;
    const cells = Array.from({ length: members }, (_, index) => this.#cells.founded(index));
    return {
      ...{ cells, network: [], ghost: EMPTY_GHOST, proposed: 0, crashes },
      ...{ late: [], delays: this.#scope.delays ?? 0 },
      ...{ parent: null, by: null },
    };
  }

  #expand(world: World): void {
    const { cells, network, proposed, crashes } = world;
    if (this.#scope.delays !== undefined && this.#finishRound(world)) return;
    const waiting = this.#scope.delays === undefined ? network : world.late;
    for (const message of waiting) {
      const rest = waiting.filter((other) => other !== message);
      const free = this.#scope.delays === undefined;
      const without = free ? { ...world, network: rest } : { ...world, late: rest };
      this.#act(without, this.#cells.receiver(message), { kind: "deliver", message });
    }
    for (let node = 0; node < cells.length; node++) {
      const able = this.#cells.able(cells[node] ?? 0);
      if (able.up) {
        this.#act(world, node, { kind: "elect" });
        if (able.unsynced) this.#act(world, node, { kind: "sync" });
        if (able.notice) this.#act(world, node, { kind: "notice" });
        if (crashes > 0) {
          this.#act({ ...world, crashes: crashes - 1 }, node, { kind: "crash" });
        }
      } else this.#act(world, node, { kind: "restart" });
      if (able.acting && proposed < this.#scope.values) {
        const next = { ...world, proposed: proposed + 1 };
        this.#act(next, node, { kind: "propose", value: proposed });
      }
    }
  }

  /** The first message of the round arrives, is lost, or will be late. False: the round is over. */
  #finishRound(world: World): boolean {
    const [message, ...rest] = world.network;
    if (message === undefined) return false;
    const without = { ...world, network: rest };
    this.#act(without, this.#cells.receiver(message), { kind: "deliver", message });
    this.#visit(without);
    if (world.delays === 0 || world.late.includes(message)) return true;
    this.#visit({ ...without, late: merged(world.late, [message]), delays: world.delays - 1 });
    return true;
  }

  #act(world: World, node: number, act: Act): void {
    if (this.#violation !== null) return;
    const outcome = this.#cells.step(world.cells[node] ?? 0, act);
    if (outcome === null) return;
    let next = this.#after(world, node, outcome, [node, act]);
    // Without further crashes, an unsynced disk is equivalent to a slow message.
    if (next.crashes === 0) next = this.#syncAll(next);
    this.#visit(next);
  }

  #syncAll(world: World): World {
    let next = world;
    for (let node = 0; node < world.cells.length; node++) {
      const outcome = this.#cells.step(next.cells[node] ?? 0, { kind: "sync" });
      if (outcome !== null) next = this.#after(next, node, outcome, world.by);
    }
    return next;
  }

  #after(world: World, node: number, outcome: Outcome, by: World["by"]): World {
    const cells = world.cells.with(node, outcome.cell);
    const alive = (message: number): boolean =>
      !this.#cells.stale(message, cells[this.#cells.receiver(message)] ?? 0);
    const sent =
      this.#scope.delays === undefined
        ? merged(world.network, outcome.sent)
        : [...new Set([...world.network, ...outcome.sent])];
    const network = sent.filter(alive);
    const late = world.late.filter(alive);
    const parent = world.parent !== null && by === world.by ? world.parent : world;
    const ghost = this.#judge(world.ghost, node, outcome);
    const next: World = { ...world, cells, network, late, ghost, parent, by };
    if (this.#violation !== null) this.#culprit ??= next;
    return next;
  }

  #judge(ghost: Ghost, node: number, outcome: Outcome): Ghost {
    if (outcome.violation !== null) this.#violation ??= outcome.violation;
    if (outcome.commits.length === 0 && outcome.tookOver === null) return ghost;
    const committed = [...ghost.committed];
    const committedIn = [...ghost.committedIn];
    const primaries = [...ghost.primaries];
    for (const { seq, value } of outcome.commits) {
      const known = committed[seq];
      if (known === undefined) {
        committed[seq] = value;
        committedIn[seq] = outcome.view;
      } else if (known !== value) this.#violation ??= `I1: ${seq} is ${known} and ${value}`;
    }
    if (outcome.tookOver !== null) {
      const { view, log } = outcome.tookOver;
      const leader = `${view}:n${node}`;
      if (primaries.some((other) => other.startsWith(`${view}:`))) {
        this.#violation ??= `I3: view ${view} is led twice`;
      }
      primaries.push(leader);
      committed.forEach((value, seq) => {
        if ((committedIn[seq] ?? 0) >= view || log[seq] === value) return;
        this.#violation ??= `I2: the primary of view ${view} lacks ${value} at ${seq}`;
      });
    }
    primaries.sort();
    const key = `${committed.join()};${committedIn.join()};${primaries.join()}`;
    return { key, committed, committedIn, primaries };
  }

  #trace(): readonly string[] {
    const steps: string[] = [];
    for (let world = this.#culprit; world !== null; world = world.parent) {
      if (world.by === null) continue;
      const [node, act] = world.by;
      steps.unshift(`n${node} ${this.#cells.describe(act)}`);
    }
    return steps;
  }

  #visit(world: World): void {
    const { cells, network, late, delays, ghost, proposed, crashes } = world;
    const waiting = `${network.join()}|${late.join()}|${delays}`;
    const key = `${cells.join()}|${waiting}|${ghost.key}|${proposed}|${crashes}`;
    if (this.#seen.add(key)) this.#next.push(world);
  }
}

function merged(network: readonly number[], sent: readonly number[]): readonly number[] {
  if (sent.length === 0) return network;
  const fresh = sent.filter((message) => !network.includes(message));
  if (fresh.length === 0) return network;
  return [...new Set([...network, ...fresh])].sort((a, b) => a - b);
}
