/**
 * The replicas of an exploration, interned: a cell is one replica with its disk, identified by a number, and the effect
 * of each act on it is computed once. Counters that only grow are reset to zero and times are dropped, so that equal
 * situations are equal cells.
 */

import { millis } from "../../src/core/base/brand.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import type { VsrConfig } from "../../src/core/ledger/group/config.ts";
import type { LogEntry, VsrMessage } from "../../src/core/ledger/group/messages.ts";
import type { Origin } from "../../src/core/ledger/group/replica.ts";
import { Replica } from "../../src/core/ledger/group/replica.ts";
import type { VsrRules } from "../../src/core/ledger/group/rules.ts";
import type { ReplicaState } from "../../src/core/ledger/group/state.ts";
import { ImageFold } from "../../src/core/ledger/group/state.ts";
import type {
  GroupImage,
  VsrEffect,
  VsrInput,
  VsrRecord,
} from "../../src/core/ledger/group/types.ts";

export type Act =
  | { readonly kind: "deliver"; readonly message: number }
  | { readonly kind: "elect" | "sync" | "notice" | "crash" | "restart" }
  | { readonly kind: "propose"; readonly value: number };

export interface Outcome {
  readonly cell: number;
  readonly sent: readonly number[];
  readonly commits: readonly { readonly seq: number; readonly value: string }[];
  /** The view the replica is in afterwards. */
  readonly view: number;
  readonly tookOver: { readonly view: number; readonly log: readonly string[] } | null;
  readonly violation: string | null;
}

interface Cell {
  readonly node: number;
  /** Null while the process is down. */
  readonly state: ReplicaState | null;
  readonly disk: GroupImage;
  readonly unsynced: readonly VsrRecord[];
}

interface Flight {
  readonly from: number;
  readonly to: number;
  readonly message: VsrMessage;
}

interface CellOptions {
  readonly members: readonly NodeId[];
  readonly config: VsrConfig;
  readonly rules: VsrRules;
  readonly viewsMax: number;
}

const NOW = millis(0);
const NEVER = Number.POSITIVE_INFINITY;
const NO_BYTES = new Uint8Array(0);

export class Cells {
  readonly #options: CellOptions;
  readonly #cells: Cell[] = [];
  readonly #cellIds = new Map<string, number>();
  readonly #flights: Flight[] = [];
  readonly #flightIds = new Map<string, number>();
  /** By cell and code of the act. */
  readonly #outcomes: (Outcome | null | undefined)[][] = [];

  constructor(options: CellOptions) {
    this.#options = options;
  }

  get cellCount(): number {
    return this.#cells.length;
  }

  get messageCount(): number {
    return this.#flights.length;
  }

  /** A replica of a new group, with its founding on disk. */
  founded(node: number): number {
    const { members } = this.#options;
    const disk = new ImageFold().image;
    const begun = this.#start(
      { node, state: null, disk, unsynced: [] },
      { kind: "founded", members },
    );
    return this.step(begun.cell, { kind: "sync" })?.cell ?? begun.cell;
  }

  receiver(message: number): number {
    return this.#flights[message]?.to ?? 0;
  }

  /** A message of a view that its receiver has left for good. */
  stale(message: number, receiver: number): boolean {
    const flight = this.#flights[message];
    if (flight === undefined || !("view" in flight.message)) return true;
    // Without that rule an old candidate is still listened to.
    if (flight.message.kind === "viewChange" && !this.#options.rules.staleViewRefused) return false;
    return flight.message.view < this.#cell(receiver).disk.knownView;
  }

  able(id: number): { up: boolean; acting: boolean; unsynced: boolean; notice: boolean } {
    const { state, unsynced } = this.#cell(id);
    const notice = state?.acting === true && state.noticeAt < NEVER;
    const acting = state?.acting === true;
    return { up: state !== null, acting, unsynced: unsynced.length > 0, notice };
  }

  describe(act: Act): string {
    if (act.kind === "propose") return `propose ${act.value}`;
    if (act.kind !== "deliver") return act.kind;
    const flight = this.#flights[act.message];
    return `<- n${flight?.from} ${JSON.stringify(flight?.message, plainly)}`;
  }

  /** Null when nothing comes of it, or it is outside of the scope. */
  step(id: number, act: Act): Outcome | null {
    const code = codeOf(act);
    let outcomes = this.#outcomes[id];
    if (outcomes === undefined) {
      outcomes = [];
      this.#outcomes[id] = outcomes;
    }
    const known = outcomes[code];
    if (known !== undefined) return known;
    const outcome = this.#compute(id, act);
    const idle = outcome !== null && outcome.cell === id && outcome.sent.length === 0;
    // A message that changes nothing is the same as one that never arrives.
    const result = idle ? null : outcome;
    outcomes[code] = result;
    return result;
  }

  #compute(id: number, act: Act): Outcome | null {
    const cell = this.#cell(id);
    if (act.kind === "restart") {
      if (cell.state !== null) return null;
      return this.#start(cell, { kind: "recovered", image: cell.disk });
    }
    if (cell.state === null) return null;
    switch (act.kind) {
      case "crash":
        return this.#outcome({ ...cell, state: null, unsynced: [] }, [], null);
      case "sync":
        return cell.unsynced.length === 0 ? null : this.#sync(cell);
      case "propose": {
        const operation = { eventId: `v${act.value}`, wall: 0, logical: 0, data: NO_BYTES };
        return this.#run(cell, [{ kind: "propose", operations: [operation] }]);
      }
      case "deliver": {
        const flight = this.#flights[act.message];
        const from = this.#options.members[flight?.from ?? 0];
        if (flight === undefined || from === undefined) return null;
        return this.#run(cell, [{ kind: "message", from, message: flight.message }]);
      }
      case "notice":
        return this.#run(cell, [{ kind: "tick" }]);
      case "elect":
        return this.#elect(cell, cell.state);
    }
  }

  #sync(cell: Cell): Outcome {
    const fold = new ImageFold(cell.disk);
    for (const record of cell.unsynced) fold.apply(record);
    const count = cell.state?.appended ?? 0;
    return this.#run({ ...cell, disk: fold.image, unsynced: [] }, [{ kind: "durable", count }]);
  }

  /** An election timeout in which every asked replica would agree. */
  #elect(cell: Cell, before: ReplicaState): Outcome | null {
    const { members, viewsMax } = this.#options;
    if (before.acting || before.takeOverAt > 0) return null;
    const replica = this.#replica(cell, { ...before, candidacy: null, electAt: 0 });
    const asked = replica.step({ kind: "tick" }, NOW);
    const view = replica.state.candidacy?.view ?? viewsMax + 1;
    if (view > viewsMax) return null;
    const effects = [...asked];
    for (const from of members) {
      if (from === members[cell.node] || replica.state.candidacy?.probing !== true) continue;
      const nothing = { currentView: 0, lastNormalView: 0, lastSeq: -1, commit: -1, entries: [] };
      const reply = {
        kind: "viewChangeResponse",
        probe: true,
        granted: true,
        leaseLeftMs: 0,
      } as const;
      const message = { ...reply, ...nothing, epoch: before.epoch, view };
      effects.push(...replica.step({ kind: "message", from, message }, NOW));
    }
    return this.#finish(cell, replica, effects);
  }

  #start(cell: Cell, origin: Origin): Outcome {
    const { config, rules, members } = this.#options;
    const self = members[cell.node] as NodeId;
    const replica = new Replica({ self, config }, origin, new Random(0), rules);
    return this.#finish(cell, replica, replica.start(NOW));
  }

  #run(cell: Cell, inputs: readonly VsrInput[]): Outcome {
    const replica = this.#replica(cell, cell.state);
    return this.#finish(
      cell,
      replica,
      inputs.flatMap((input) => replica.step(input, NOW)),
    );
  }

  #replica(cell: Cell, state: ReplicaState | null): Replica {
    const { config, rules, members } = this.#options;
    const self = members[cell.node] as NodeId;
    const copy = structuredClone(state) as ReplicaState;
    return new Replica({ self, config }, copy, new Random(0), rules);
  }

  #finish(cell: Cell, replica: Replica, effects: readonly VsrEffect[]): Outcome {
    const { state } = replica;
    const records: VsrRecord[] = [];
    for (const effect of effects) if (effect.kind === "persist") records.push(effect.record);
    const before = cell.state;
    normalise(state);
    const next = { ...cell, state, unsynced: [...cell.unsynced, ...records] };
    const back = before !== null && state.commit < before.commit;
    return this.#outcome(next, effects, back ? "I5: a commit number went back" : null);
  }

  #outcome(cell: Cell, effects: readonly VsrEffect[], found: string | null): Outcome {
    const sent: number[] = [];
    const commits: { seq: number; value: string }[] = [];
    let tookOver: Outcome["tookOver"] = null;
    let violation = found;
    for (const effect of effects) {
      if (effect.kind === "send") {
        violation ??= saidFalsely(cell, effect.message);
        const flight = this.#flight(cell.node, effect.to, effect.message);
        if (flight !== null) sent.push(flight);
      } else if (effect.kind === "committed") {
        const { seq } = effect.entry;
        const last = commits.at(-1);
        if (last !== undefined && last.seq + 1 !== seq) violation ??= `I4: ${seq} out of order`;
        commits.push({ seq, value: nameOf(effect.entry) });
      } else if (effect.kind === "tookOver") {
        tookOver = { view: effect.view, log: (cell.state?.entries ?? []).map(nameOf) };
      } else if (effect.kind === "broken") violation ??= `I1: ${effect.why}`;
    }
    const view = cell.state?.knownView ?? 0;
    return { cell: this.#intern(cell), sent, commits, view, tookOver, violation };
  }

  #flight(from: number, to: NodeId, message: VsrMessage): number | null {
    const { members } = this.#options;
    if (message.kind === "found" || ("probe" in message && message.probe) || refuses(message)) {
      return null;
    }
    const flight = { from, to: members.indexOf(to), message };
    const key = JSON.stringify(flight, plainly);
    const known = this.#flightIds.get(key);
    if (known !== undefined) return known;
    this.#flights.push(flight);
    this.#flightIds.set(key, this.#flights.length - 1);
    return this.#flights.length - 1;
  }

  #cell(id: number): Cell {
    return this.#cells[id] as Cell;
  }

  #intern(cell: Cell): number {
    const key = JSON.stringify(cell, plainly);
    const known = this.#cellIds.get(key);
    if (known !== undefined) return known;
    this.#cells.push(cell);
    this.#cellIds.set(key, this.#cells.length - 1);
    return this.#cells.length - 1;
  }
}

/** Answers that only refuse hasten things; here they are always lost. */
function refuses(message: VsrMessage): boolean {
  if (message.kind === "viewChangeResponse") return !message.granted;
  return message.kind === "prepareResponse" && message.status === "staleView";
}

/** G1, G2: a grant or an ack that the disk does not bear out. */
function saidFalsely(cell: Cell, message: VsrMessage): string | null {
  const { disk } = cell;
  if (message.kind === "viewChangeResponse" && message.granted && !message.probe) {
    const { view, currentView } = message;
    if (disk.knownView < view) return `G1: view ${view} granted, not on disk`;
    if (currentView !== view) return `G1: view ${view} granted in view ${currentView}`;
  }
  if (message.kind === "prepareResponse" && message.status === "success" && message.acked >= 0) {
    const last = disk.entries.at(-1)?.seq ?? -1;
    if (message.acked > last) return `G2: ${message.acked} acked with ${last} on disk`;
    if (disk.lastNormalView !== message.view)
      return "G2: acked with the log of another view on disk";
  }
  return null;
}

const CODES = ["elect", "sync", "notice", "crash", "restart"];
const VALUES_MAX = 3;

function codeOf(act: Act): number {
  if (act.kind === "deliver") return CODES.length + VALUES_MAX + act.message;
  return act.kind === "propose" ? CODES.length + act.value : CODES.indexOf(act.kind);
}

function nameOf(entry: LogEntry): string {
  return `${entry.eventId}@${entry.view}`;
}

function normalise(state: ReplicaState): void {
  const { durable } = state;
  state.appended -= durable;
  state.durable = 0;
  if (state.takeOverAt > 0) state.takeOverAt = Math.max(1, state.takeOverAt - durable);
  state.marks = state.marks.map((mark) => ({ ...mark, ticket: mark.ticket - durable }));
  state.held = state.held.map((held) => ({ ...held, ticket: held.ticket - durable }));
  state.electAt = NEVER;
  state.heartbeatAt = NEVER;
  state.activeAt = 0;
  state.wokenAt = -1;
  if (state.noticeAt < NEVER) state.noticeAt = 0;
  const { candidacy, transfer } = state;
  if (candidacy !== null) {
    candidacy.ticket = Math.max(0, candidacy.ticket - durable);
    candidacy.deadline = NEVER;
    candidacy.resendAt = NEVER;
  }
  if (transfer !== null) transfer.retryAt = NEVER;
  // Fields that are no longer used once a view is led.
  if (state.acting) state.grantedTo = null;
  state.seenView = Math.max(state.knownView, state.seenView);
}

/** Maps and sets as lists, infinite times by name; bytes are always empty here. */
function plainly(_key: string, value: unknown): unknown {
  if (value instanceof Map)
    return [...value].sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1));
  if (value instanceof Set) return [...value].sort();
  if (value instanceof Uint8Array) return 0;
  if (value === NEVER) return "never";
  return value;
}
