/**
 * Hybrid logical clock: physical time where clocks agree, a counter where they do not. Stamps order
 * events across jobs, audit queries and bounded-staleness reads; inside a job the log position decides,
 * never the stamp. (HLC-6)
 *
 *     node A, physical 100    (100,0) ──send──┐                         ┌─> (100,2)   tick at 101: (101,0)
 *     node B, physical  95                    └─> (100,1) ────ack───────┘
 *
 * Rules kept here: if A happens before B then stamp(A) < stamp(B), whatever clocks do (HLC-3). A message
 * from further in the future than the drift bound is refused and not merged: merging would drag the
 * whole cluster forward (HLC-5). A restarted node continues above everything its log holds (HLC-4);
 * for that a stamp must be in the node's log before it leaves the node, which is the log's order anyway.
 */

import { assert } from "./assert.ts";
import type { NodeId } from "./ids.ts";

/** Form on disk and in record heads: the writer's name is known from the context. */
interface HlcStamp {
  readonly wallMs: number;
  readonly logical: number;
}

export interface Hlc extends HlcStamp {
  readonly node: NodeId;
}

/** The largest stamp a decoder takes: the year 10889, and a counter that carries into the wall time. */
export const HLC_WALL_MS_MAX = 2 ** 48;
export const HLC_LOGICAL_MAX = 2 ** 32;

/** A stamp further ahead of our physical clock than this is refused. (HLC-5, G-6) */
export const HLC_DRIFT_MS_MAX = 10_000;

interface ClockSkew {
  readonly code: "CLOCK_SKEW";
  readonly aheadMs: number;
  readonly driftMsMax: number;
}

type ReceiveResult =
  | { readonly ok: true; readonly hlc: Hlc }
  | { readonly ok: false; readonly refusal: ClockSkew };

export class HybridClock {
  readonly #node: NodeId;
  readonly #driftMsMax: number;
  #wallMs = 0;
  #logical = 0;
  #refused = 0;

  constructor(node: NodeId, driftMsMax: number = HLC_DRIFT_MS_MAX) {
    assert(driftMsMax > 0, "the drift bound is positive");
    this.#node = node;
    this.#driftMsMax = driftMsMax;
  }

  /** The newest stamp given out or taken in. */
  get current(): Hlc {
    return { wallMs: this.#wallMs, logical: this.#logical, node: this.#node };
  }

  /** Messages refused for their distance in time. */
  get refused(): number {
    return this.#refused;
  }

  /** A local event at the given physical time. (HLC-1) */
  tick(physicalMs: number): Hlc {
    assertPhysical(physicalMs);
    const wallMs = Math.max(this.#wallMs, physicalMs);
    return this.#set(wallMs, wallMs === this.#wallMs ? this.#logical + 1 : 0);
  }

  /** A remote stamp arrived at the given physical time. A refused one changes nothing. (HLC-2, HLC-5) */
  receive(remote: HlcStamp, physicalMs: number): ReceiveResult {
    assertPhysical(physicalMs);
    const aheadMs = remote.wallMs - physicalMs;
    if (aheadMs > this.#driftMsMax) {
      this.#refused++;
      return {
        ok: false,
        refusal: { code: "CLOCK_SKEW", aheadMs, driftMsMax: this.#driftMsMax },
      };
    }
    const wallMs = Math.max(this.#wallMs, remote.wallMs, physicalMs);
    return { ok: true, hlc: this.#set(wallMs, this.#logicalAfter(remote, wallMs)) };
  }

  #logicalAfter(remote: HlcStamp, wallMs: number): number {
    const isOurs = wallMs === this.#wallMs;
    const isTheirs = wallMs === remote.wallMs;
    if (isOurs && isTheirs) return Math.max(this.#logical, remote.logical) + 1;
    if (isOurs) return this.#logical + 1;
    return isTheirs ? remote.logical + 1 : 0;
  }

  /** A stamp read back from our log: the clock never falls below it, the name stays ours. (HLC-4) */
  recover(stamp: HlcStamp): void {
    if (compareStamps(stamp, this.current) <= 0) return;
    this.#wallMs = stamp.wallMs;
    this.#logical = stamp.logical;
  }

  /** How long to wait before serving: our own past lies too far ahead of our clock. (HLC-5) */
  waitMs(physicalMs: number): number {
    assertPhysical(physicalMs);
    return Math.max(0, this.#wallMs - physicalMs - this.#driftMsMax);
  }

  #set(wallMs: number, logical: number): Hlc {
    // The counter carries into the wall time instead of leaving what decoders take: a peer's counter is
    // data, and data must not stop us. Order is kept.
    const overflows = logical > HLC_LOGICAL_MAX;
    this.#wallMs = overflows ? wallMs + 1 : wallMs;
    this.#logical = overflows ? 0 : logical;
    return this.current;
  }
}

function assertPhysical(physicalMs: number): void {
  assert(Number.isSafeInteger(physicalMs), "physical time is a whole number of milliseconds");
}

/** Order without the name: equal stamps of two nodes compare equal. */
function compareStamps(a: HlcStamp, b: HlcStamp): number {
  return a.wallMs === b.wallMs ? a.logical - b.logical : a.wallMs - b.wallMs;
}

/** The total order of stamps: wall, counter, name. */
export function compareHlc(a: Hlc, b: Hlc): number {
  const byStamp = compareStamps(a, b);
  if (byStamp !== 0) return byStamp;
  if (a.node === b.node) return 0;
  return a.node < b.node ? -1 : 1;
}
