/**
 * Invariants of one group after every step, whatever the schedule. The ids are those of docs/internals/vsr.md: I1..I8
 * for the log and reads, G1..G5 for a replica's messages, L1 and L2 for promises kept and given up.
 */

import type { NodeId } from "../../src/core/base/ids.ts";
import type { LogEntry, VsrMessage } from "../../src/core/ledger/group/messages.ts";
import type { ReplicaState } from "../../src/core/ledger/group/state.ts";
import type { GroupImage, VsrEffect } from "../../src/core/ledger/group/types.ts";

/** State of a node at the end of a step, as needed by the checks. */
interface Observed {
  readonly id: NodeId;
  readonly state: ReplicaState;
  /** Folded from what is on disk. */
  readonly durable: GroupImage;
  /** The node's own clock. */
  readonly clock: number;
}

interface Promised {
  readonly to: NodeId;
  readonly until: number;
  readonly view: number;
  /** The newest message it was promised by, on the primary's clock. */
  readonly sentAt: number;
}

type LeadMessage = Extract<VsrMessage, { kind: "prepare" | "commit" }>;

interface CheckOptions {
  readonly leaseMs: number;
  readonly leaseReads: boolean;
  /** Report only damage (I1..I8), not the messages and promises that lead to it. */
  readonly damageOnly: boolean;
  /** Content of a node's disk. */
  readonly disk: (id: NodeId) => GroupImage;
}

export class GroupChecks {
  violation: string | null = null;
  /** Committed entry at each index, as first committed. */
  readonly committed: LogEntry[] = [];
  readonly #epochs: number[] = [];
  readonly #committedIn: number[] = [];
  readonly #primaries = new Map<string, NodeId>();
  readonly #applied = new Map<NodeId, number>();
  readonly #commits = new Map<NodeId, number>();
  readonly #promises = new Map<NodeId, Promised>();
  readonly #views = new Map<NodeId, readonly [number, number]>();
  readonly #resigned = new Map<NodeId, number>();
  readonly #reads = new Map<number, number>();
  readonly #options: CheckOptions;
  /** Everything up to here was acknowledged to somebody outside. */
  acknowledged = -1;
  /** The view that committed last: the highest fence that a manager can have seen. */
  #fence = 0;
  readsDone = 0;

  constructor(options: CheckOptions) {
    this.#options = options;
  }

  report(text: string): void {
    if (!this.#options.damageOnly || text.startsWith("I")) this.violation ??= text;
  }

  /** A process started: its former memory is lost. */
  started(id: NodeId): void {
    this.#applied.set(id, -1);
    this.#commits.delete(id);
    this.#promises.delete(id);
    this.#views.delete(id);
  }

  readInvoked(token: number): void {
    this.#reads.set(token, this.acknowledged);
  }

  after(observed: Observed, effects: readonly VsrEffect[]): void {
    const { id, state } = observed;
    for (const effect of effects) this.#onEffect(observed, effect);
    const before = this.#commits.get(id) ?? -1;
    if (state.commit < before) this.report(`I5: ${id} went back from ${before} to ${state.commit}`);
    this.#commits.set(id, state.commit);
    this.#checkViews(observed);
  }

  #onEffect(observed: Observed, effect: VsrEffect): void {
    const { id } = observed;
    switch (effect.kind) {
      case "committed":
        this.#onCommitted(observed, effect.entry);
        // Only the primary counts copies, and it answers its client.
        if (effect.copies.length > 0)
          this.acknowledged = Math.max(this.acknowledged, effect.entry.seq);
        this.#checkCopies(effect.entry, effect.copies);
        return;
      case "restored":
        if (effect.snapshot.seq >= this.committed.length) {
          this.report(`I1: ${id} restores ${effect.snapshot.seq}, which nobody committed`);
        }
        this.#applied.set(id, effect.snapshot.seq);
        return;
      case "tookOver":
        this.#onTookOver(observed, effect.view);
        return;
      case "readReady":
        this.#onRead(id, effect.token, effect.seq);
        return;
      case "broken":
        this.report(`I1: ${effect.why}`);
        return;
      case "send":
        this.#onSent(observed, effect.message);
    }
  }

  #onCommitted({ id, state }: Observed, entry: LogEntry): void {
    const next = (this.#applied.get(id) ?? -1) + 1;
    if (entry.seq !== next) this.report(`I4: ${id} applies ${entry.seq} after ${next - 1}`);
    this.#applied.set(id, entry.seq);
    const known = this.committed[entry.seq];
    if (known === undefined) {
      this.committed[entry.seq] = entry;
      const last = this.committed[entry.seq - 1];
      const epoch = (this.#epochs.at(-1) ?? 1) + (last?.kind === "reconfigure" ? 1 : 0);
      this.#epochs.push(epoch);
      this.#committedIn.push(state.knownView);
      if (state.knownView < this.#fence) {
        this.report(
          `I7: view ${state.knownView} commits ${entry.seq} after view ${this.#fence} did`,
        );
      }
      this.#fence = state.knownView;
      // VSR-27: a reconfiguration is the last entry of its epoch.
      if (entry.epoch !== epoch) {
        this.report(`G4: ${entry.seq} is of epoch ${entry.epoch} where epoch ${epoch} runs`);
      }
    } else if (known.eventId !== entry.eventId || known.view !== entry.view) {
      this.report(`I1: ${entry.seq} is ${known.eventId} and ${entry.eventId}`);
    }
  }

  /** A committed entry stays where it was counted, so every counted replica has it on disk. */
  #checkCopies(entry: LogEntry, copies: readonly NodeId[]): void {
    for (const id of copies) {
      const { entries, snapshot } = this.#options.disk(id);
      const held = entries[entry.seq - (entries[0]?.seq ?? 0)];
      if (held?.eventId === entry.eventId && held.view === entry.view) continue;
      if (entry.seq <= (snapshot?.seq ?? -1)) continue;
      this.report(`I6: ${id} counts as a copy of ${entry.eventId} at ${entry.seq} without it`);
    }
  }

  #onTookOver({ id, state }: Observed, view: number): void {
    const key = `${state.epoch}/${view}`;
    const other = this.#primaries.get(key);
    if (other !== undefined) this.report(`I3: ${other} and ${id} lead view ${view}`);
    this.#primaries.set(key, id);
    for (const entry of this.committed.slice(state.firstSeq)) {
      // A higher view may have overtaken this one before it began; then it cannot commit.
      if ((this.#committedIn[entry.seq] ?? 0) >= view) continue;
      const own = state.entries[entry.seq - state.firstSeq];
      if (own?.eventId === entry.eventId && own.view === entry.view) continue;
      this.report(`I2: the primary of view ${view} lacks ${entry.eventId} at ${entry.seq}`);
    }
  }

  #onRead(id: NodeId, token: number, seq: number): void {
    const floor = this.#reads.get(token) ?? -1;
    this.#reads.delete(token);
    this.readsDone++;
    if (seq < floor) this.report(`I8: ${id} reads up to ${seq} after ${floor} was told`);
    if (seq >= this.committed.length) this.report(`I8: ${id} reads ${seq}, which is not committed`);
    this.acknowledged = Math.max(this.acknowledged, seq);
  }

  #onSent({ id, durable }: Observed, message: VsrMessage): void {
    if (message.kind === "resign") this.#resigned.set(id, message.view);
    const leads = message.kind === "prepare" || message.kind === "commit";
    if (leads && this.#resigned.get(id) === message.view) {
      this.report(`L2: ${id} has given up view ${message.view} and leads on`);
    }
    if (message.kind === "viewChangeResponse" && message.granted && !message.probe) {
      const { view, epoch } = message;
      if (durable.epoch === epoch && durable.knownView < view) {
        this.report(`G1: ${id} grants view ${view} with ${durable.knownView} on disk`);
      }
      if (message.currentView !== view) {
        this.report(`G1: ${id} grants view ${view} in view ${message.currentView}`);
      }
      if (durable.learner) this.report(`G3: ${id} votes without a log`);
    }
    if (message.kind === "prepareResponse" && message.status === "success" && message.acked >= 0) {
      const last = durable.entries.at(-1)?.seq ?? durable.snapshot?.seq ?? -1;
      if (message.acked > last) this.report(`G2: ${id} acks ${message.acked} with ${last} on disk`);
      if (durable.epoch === message.epoch && durable.lastNormalView !== message.view) {
        this.report(`G2: ${id} acks in view ${message.view} with the log of another on disk`);
      }
    }
  }

  /**
   * Promised to a primary: no other view before that is over, on the replica's own clock. Its last
   * heartbeat before it sleeps, unless it spoke again since, is the end of that.
   */
  promised({ id, state, clock }: Observed, to: NodeId, message: LeadMessage): void {
    const { knownView: view } = state;
    const before = this.#promises.get(id);
    const known = before?.to === to && before.view === view ? before.sentAt : -1;
    const sentAt = Math.max(known, message.sentAt);
    const isLast = message.kind === "commit" && message.sleeps && state.asleep;
    if (isLast && message.sentAt === sentAt) this.#promises.delete(id);
    else this.#promises.set(id, { to, until: clock + this.#options.leaseMs, view, sentAt });
  }

  /** The primary that received the promise has given up that view. */
  released(id: NodeId, by: NodeId, view: number): void {
    const promise = this.#promises.get(id);
    if (promise?.to === by && promise.view === view) this.#promises.delete(id);
  }

  /** With lease reads, a restart must count as a promise to any primary. (VSR-23) */
  restarted(id: NodeId, clock: number): void {
    if (!this.#options.leaseReads) return;
    const until = clock + this.#options.leaseMs;
    this.#promises.set(id, { to: "" as NodeId, until, view: 0, sentAt: -1 });
  }

  #checkViews({ id, state, clock }: Observed): void {
    const [epoch, view] = this.#views.get(id) ?? [0, 0];
    if (state.epoch !== epoch) this.#promises.delete(id);
    else if (state.knownView < view) this.report(`I5: ${id} went back to view ${state.knownView}`);
    else if (state.knownView > view && state.grantedTo !== null) {
      const promise = this.#promises.get(id);
      const bound =
        promise !== undefined && clock < promise.until && promise.to !== state.grantedTo;
      if (bound) this.report(`L1: ${id} grants view ${state.knownView} in spite of its promise`);
    }
    this.#views.set(id, [state.epoch, state.knownView]);
  }
}
