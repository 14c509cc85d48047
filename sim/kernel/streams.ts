/**
 * Byte streams between simulated processes, like TCP: in order, in pieces, at most once, until a cut, a crash or a
 * refusal ends them. Carries out the effects of a process's links.
 *
 *     dial ──► refused (no listener) · no answer (cut, or no power) · opened at both ends
 *     write ──► arrives in order, split anywhere; while the link is cut it is kept and retried
 *     kill   the other side is notified      power loss   it is not, until it writes to the machine that is back
 */

import type { Random } from "../../src/core/base/random.ts";
import type { LinkEffect, LinkInput, StreamId } from "../../src/core/cluster/link/types.ts";
import type { Network } from "./network.ts";
import type { World } from "./world.ts";

/** A process as the network sees it. */
export interface StreamHost {
  readonly index: number;
  /** Increases with every start of the process. */
  readonly life: number;
  readonly listens: boolean;
  /** The machine has power: it refuses connections that no process accepts. */
  readonly powered: boolean;
  /** Delivers to the process of that incarnation, if it still runs. */
  deliver(life: number, input: LinkInput): void;
}

export interface StreamFaults {
  /** Chance that a write arrives in two pieces. */
  readonly split: number;
  /** Maximum delay until the sender is notified of drained bytes. */
  readonly drainMsMax: number;
  /** A stream over a cut link is closed after this, or continues when the cut is over. */
  readonly patienceMs: number;
}

export const CALM_STREAMS: StreamFaults = { split: 0, drainMsMax: 0, patienceMs: 15_000 };

const RETRY_MS_MIN = 200;
const RETRY_MS_MAX = 3_000;
const SIGNAL_BYTES = 40;

interface Piece {
  readonly bytes: Uint8Array;
  readonly mark: number | null;
}

/** One end of a stream, with the bytes in flight to the other. */
interface End {
  readonly host: StreamHost;
  readonly life: number;
  readonly id: StreamId;
  open: boolean;
  lastArrival: number;
  /** Not sent yet: the link is cut. */
  held: Piece[];
  retryMs: number;
  heldSince: number;
  ends: boolean;
  other: End | null;
}

export class Streams {
  readonly #world: World;
  readonly #network: Network;
  readonly #random: Random;
  readonly #hosts: ReadonlyMap<string, StreamHost>;
  /** Open ends of each process, by their number. */
  readonly #ends = new Map<number, Map<StreamId, End>>();
  #accepted = -1;
  faults: StreamFaults = CALM_STREAMS;

  /** `hosts`: by address. */
  constructor(
    world: World,
    network: Network,
    random: Random,
    hosts: ReadonlyMap<string, StreamHost>,
  ) {
    this.#world = world;
    this.#network = network;
    this.#random = random;
    this.#hosts = hosts;
  }

  run(from: StreamHost, effect: LinkEffect): void {
    if (effect.kind === "dial") {
      this.#dial(from, effect);
      return;
    }
    const end = this.#ends.get(from.index)?.get(effect.stream);
    if (end === undefined) return;
    switch (effect.kind) {
      case "write":
        this.#write(end, { bytes: effect.bytes, mark: effect.mark });
        return;
      case "end":
        end.ends = true;
        if (end.held.length === 0) this.#finish(end);
        return;
      case "destroy":
        this.#close(end);
        this.#finish(end);
        return;
      case "prove":
        return;
    }
  }

  /** The other end of an open stream. */
  otherEnd(
    index: number,
    stream: StreamId,
  ): { readonly host: StreamHost; readonly life: number; readonly id: StreamId } | null {
    return this.#ends.get(index)?.get(stream)?.other ?? null;
  }

  /** Ends a process. After a kill its machine closes the streams; after a power loss the peers learn nothing. */
  abandon(index: number, power: boolean): void {
    const ends = [...(this.#ends.get(index)?.values() ?? [])];
    for (const end of ends) {
      this.#close(end);
      if (!power) this.#finish(end);
    }
  }

  /** Breaks every stream between the two now and notifies both ends; the link itself stays. */
  breakBetween(one: number, other: number): void {
    for (const end of [...(this.#ends.get(one)?.values() ?? [])]) {
      if (end.other === null || end.other.host.index !== other) continue;
      const { other: far } = end;
      this.#reset(end);
      this.#reset(far);
    }
  }

  #dial(from: StreamHost, effect: Extract<LinkEffect, { kind: "dial" }>): void {
    const { stream, to, timeoutMs } = effect;
    const { life } = from;
    const deadline = this.#world.now + timeoutMs;
    const target = this.#hosts.get(to);
    const noAnswer = (): void => {
      this.#world.schedule(deadline, "streamFailed", from.index, () => {
        from.deliver(life, { kind: "dialFailed", stream, refused: false });
      });
    };
    if (target === undefined) {
      noAnswer();
      return;
    }
    const asked = this.#signal(from.index, target.index, deadline, () => {
      const theirs = target.listens ? this.#accept(target, from) : null;
      const answers = target.powered;
      const answered =
        answers &&
        this.#signal(target.index, from.index, deadline, () => {
          if (theirs !== null) this.#connect(from, life, stream, theirs);
          else from.deliver(life, { kind: "dialFailed", stream, refused: true });
        });
      if (answered) return;
      // The accepting side is not notified either: it waits for a greeting that does not come.
      noAnswer();
    });
    if (!asked) noAnswer();
  }

  #accept(target: StreamHost, from: StreamHost): End {
    this.#accepted += 2;
    const theirs = this.#end(target, target.life, this.#accepted as StreamId);
    this.#opened(theirs, from.index);
    return theirs;
  }

  #connect(from: StreamHost, life: number, stream: StreamId, theirs: End): void {
    if (from.life !== life) {
      this.#reset(theirs);
      return;
    }
    const ours = this.#end(from, life, stream);
    ours.other = theirs;
    theirs.other = ours;
    this.#opened(ours, theirs.host.index);
    // Data that arrived before this end knew of the open stream.
    const early = theirs.held;
    theirs.held = [];
    for (const piece of early) this.#write(theirs, piece);
    if (!theirs.open) this.#finish(theirs);
  }

  #end(host: StreamHost, life: number, id: StreamId): End {
    const end: End = {
      ...{ host, life, id, open: true, lastArrival: 0, held: [] },
      ...{ retryMs: RETRY_MS_MIN, heldSince: 0, ends: false, other: null },
    };
    let ends = this.#ends.get(host.index);
    if (ends === undefined) {
      ends = new Map();
      this.#ends.set(host.index, ends);
    }
    ends.set(id, end);
    return end;
  }

  #opened(end: End, other: number): void {
    const facts = { host: `10.0.0.${other + 1}`, peerUris: null };
    end.host.deliver(end.life, { kind: "opened", stream: end.id, facts });
  }

  #write(end: End, piece: Piece): void {
    if (!end.open) return;
    if (end.other === null || end.held.length > 0 || !this.#carry(end, piece))
      this.#hold(end, piece);
  }

  /** False while the link is cut. */
  #carry(end: End, piece: Piece): boolean {
    const { other } = end;
    if (other === null) return true;
    const world = this.#world;
    const random = this.#random;
    const [from, to] = [end.host.index, other.host.index];
    if (!other.host.powered) return false;
    const arrival = this.#network.stream(from, to, piece.bytes.length, world.now);
    if (arrival === null) return false;
    const at = Math.max(arrival, end.lastArrival);
    end.lastArrival = at;
    const bytes = this.#network.mangle(piece.bytes);
    if (bytes.length > 1 && this.faults.split > 0 && random.chance(this.faults.split)) {
      const place = 1 + random.below(bytes.length - 1);
      world.schedule(at, "streamRequest", to, () => this.#arrive(end, bytes.subarray(0, place)));
      const later = at + random.float();
      end.lastArrival = later;
      world.schedule(later, "streamRequest", to, () => this.#arrive(end, bytes.subarray(place)));
    } else world.schedule(at, "streamRequest", to, () => this.#arrive(end, bytes));
    const { mark } = piece;
    if (mark === null) return true;
    const { drainMsMax } = this.faults;
    const taken = end.lastArrival + (drainMsMax > 0 ? random.float() * drainMsMax : 0);
    world.schedule(taken, "streamReply", from, () => {
      if (end.open) end.host.deliver(end.life, { kind: "drained", stream: end.id, mark });
    });
    return true;
  }

  #arrive(end: End, bytes: Uint8Array): void {
    const { other } = end;
    if (other === null) return;
    if (other.open && other.host.life === other.life) {
      other.host.deliver(other.life, { kind: "bytes", stream: other.id, bytes });
      return;
    }
    // The stream is gone on the other side: its machine resets it.
    if (other.host.powered) this.#tell(other, end);
  }

  #hold(end: End, piece: Piece): void {
    end.held.push(piece);
    if (end.held.length > 1 || end.other === null) return;
    end.heldSince = this.#world.now;
    end.retryMs = RETRY_MS_MIN;
    this.#retry(end);
  }

  #retry(end: End): void {
    const world = this.#world;
    world.schedule(world.now + end.retryMs, "streamReply", end.host.index, () => {
      if (!end.open) return;
      end.retryMs = Math.min(RETRY_MS_MAX, end.retryMs * 2);
      while (end.held[0] !== undefined && this.#carry(end, end.held[0])) end.held.shift();
      if (end.held.length === 0) {
        if (end.ends) this.#finish(end);
      } else if (world.now - end.heldSince >= this.faults.patienceMs) this.#reset(end);
      else this.#retry(end);
    });
  }

  /** Closes this end and notifies its process. */
  #reset(end: End, isReset = true): void {
    if (!end.open) return;
    this.#close(end);
    end.host.deliver(end.life, { kind: "closed", stream: end.id, isReset });
  }

  #close(end: End): void {
    end.open = false;
    end.held = [];
    this.#ends.get(end.host.index)?.delete(end.id);
  }

  /** Closes the other side after pending writes, then this one. */
  #finish(end: End): void {
    const { other, host } = end;
    if (other === null) return;
    const world = this.#world;
    const at = this.#network.stream(host.index, other.host.index, SIGNAL_BYTES, world.now);
    if (at === null) return;
    world.schedule(Math.max(at, end.lastArrival), "streamRequest", other.host.index, () => {
      this.#reset(other, false);
      this.#tell(other, end);
    });
  }

  /** One end is closed, and its machine notifies the other. */
  #tell(from: End, to: End): void {
    const never = Number.POSITIVE_INFINITY;
    this.#signal(from.host.index, to.host.index, never, () => this.#reset(to));
  }

  /** False when it does not arrive by then. */
  #signal(from: number, to: number, deadline: number, arrive: () => void): boolean {
    const world = this.#world;
    const at = this.#network.stream(from, to, SIGNAL_BYTES, world.now);
    if (at === null || at > deadline) return false;
    world.schedule(at, "streamReply", to, arrive);
    return true;
  }
}
