/** In-memory streams between machines of a test: bytes arrive in pieces of a given size, at once or on `settle`. */

import type { LinkEffect, LinkInput, StreamId } from "../types.ts";

interface Side {
  readonly address: string;
  readonly take: (input: LinkInput) => void;
}

interface Pipe {
  readonly ends: readonly [End, End];
}

interface End {
  readonly side: Side;
  readonly id: StreamId;
  open: boolean;
}

type Sent = { readonly to: Side; readonly input: LinkInput; readonly end: End };

export class Pipes {
  readonly #sides = new Map<string, Side>();
  readonly #pipes: Pipe[] = [];
  readonly #underWay: Sent[] = [];
  #accepted = -1;
  /** Bytes per piece. */
  pieceBytes = Number.POSITIVE_INFINITY;
  /** The network never acknowledges writes. */
  clogged = false;

  add(address: string, take: (input: LinkInput) => void): Side {
    const side = { address, take };
    this.#sides.set(address, side);
    return side;
  }

  run(side: Side, effect: LinkEffect): void {
    if (effect.kind === "dial") {
      this.#dial(side, effect.stream, effect.to);
      return;
    }
    const found = this.#find(side, effect.stream);
    if (found === null) return;
    const [own, other] = found;
    switch (effect.kind) {
      case "write":
        for (let at = 0; at < effect.bytes.length; at += this.pieceBytes) {
          const bytes = effect.bytes.slice(at, at + this.pieceBytes);
          this.#send(other, { kind: "bytes", stream: other.id, bytes });
        }
        if (effect.mark === null || this.clogged) return;
        this.#send(own, { kind: "drained", stream: own.id, mark: effect.mark });
        return;
      case "end":
        this.#send(other, { kind: "closed", stream: other.id });
        this.#send(own, { kind: "closed", stream: own.id });
        return;
      case "destroy":
        own.open = false;
        this.#send(other, { kind: "closed", stream: other.id });
        return;
      case "prove":
        return;
    }
  }

  /** Delivers everything in transit, including what the deliveries cause. */
  settle(): void {
    for (let steps = 0; this.#underWay.length > 0; steps++) {
      if (steps > 1_000_000) throw new Error("the machines never stop talking");
      const { to, input, end } = this.#underWay.shift() as Sent;
      if (!end.open) continue;
      if (input.kind === "closed") end.open = false;
      to.take(input);
    }
  }

  /** Breaks every connection at both ends. */
  breakAll(): void {
    for (const { ends } of this.#pipes.splice(0)) {
      for (const end of ends) this.#send(end, { kind: "closed", stream: end.id, isReset: true });
    }
  }

  #dial(side: Side, stream: StreamId, to: string): void {
    const target = this.#sides.get(to);
    if (target === undefined) {
      const end = { side, id: stream, open: true };
      this.#send(end, { kind: "dialFailed", stream, refused: true });
      return;
    }
    this.#accepted += 2;
    const theirs = { side: target, id: this.#accepted as StreamId, open: true };
    const ours = { side, id: stream, open: true };
    this.#pipes.push({ ends: [ours, theirs] });
    for (const end of [theirs, ours]) {
      this.#send(end, {
        kind: "opened",
        stream: end.id,
        facts: { host: "10.0.0.1", peerUris: null },
      });
    }
  }

  #find(side: Side, stream: StreamId): readonly [End, End] | null {
    for (const { ends } of this.#pipes) {
      const [a, b] = ends;
      if (a.side === side && a.id === stream) return [a, b];
      if (b.side === side && b.id === stream) return [b, a];
    }
    return null;
  }

  #send(end: End, input: LinkInput): void {
    this.#underWay.push({ to: end.side, input, end });
  }
}
