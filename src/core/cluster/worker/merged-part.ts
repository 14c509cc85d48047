/**
 * The frames of a worker's cores of one execution, merged into one for the leader of the job:
 *
 *     core 0 ─ frames ─▶ ┐                 ┌─ one frame of all calls ─┐
 *     core 1 ─ frames ─▶ ┼─ FrameMerger ───┤                          ├─▶ the leader
 *     core 2 ─ frames ─▶ ┘                 └─ each core's own load ───┘
 *
 * Cores are acknowledged here, and write the next frame as a delta to the state here; the leader acknowledges
 * merged frames. A new leader has no state, and is sent everything that any core has reported so far.
 */

import type {
  CoreEvent,
  CoreFigures,
  CoreVitals,
  MergedFigures,
} from "../../load/job/core-messages.ts";
import { FrameMerger } from "../../load/stats/frame-merger.ts";
import { type Frame, FrameWriter, readFrame } from "../../load/stats/frames.ts";
import { OwnFigures } from "../../load/stats/own-figures.ts";
import type { StatsShape } from "../../load/stats/workflow-stats.ts";

export type CoreFrame = Extract<CoreEvent, { kind: "frame" }>;

/** Wait for frames of the other cores. Cores report ten times a second, but not in step. */
const GATHER_MS = 100;
/** Minimum interval between two merged frames, even if cores report too often. */
const INTERVAL_MS_MIN = 50;
/**
 * How long windows wait for a core that is behind; its frames for windows already sent come too late. Managers drop a
 * core that is silent for this long.
 */
const BEHIND_MS_MAX = 30_000;
/** Unacknowledged merged frames that are remembered, 100 s worth. */
const SENT_MAX = 1_000;

interface Member {
  readonly own: OwnFigures;
  health: CoreVitals;
  /** The core generates load, so the others wait for its frame. */
  isUnderWay: boolean;
  /** Incremented with each frame of the core. */
  version: number;
  /** Versions in the last merged frame sent, and in the last one acknowledged. */
  sent: number;
  held: number;
}

/** Content of one merged frame that was sent. */
interface Sent {
  readonly frame: number;
  readonly members: readonly {
    readonly member: Member;
    readonly version: number;
    readonly own: number;
  }[];
}

export class MergedPart {
  readonly #execution: number;
  readonly #part: string | null;
  readonly #merger: FrameMerger;
  readonly #writer: FrameWriter;
  readonly #members = new Map<number, Member>();
  #sentFrames: Sent[] = [];
  /** When the first unreported frame arrived; infinite if all are reported. */
  #newsAt = Number.POSITIVE_INFINITY;
  /** Nothing is sent before then, except ahead of an event that it must precede. */
  #notBefore = 0;

  constructor(execution: number, part: string | null, shape: StatsShape) {
    this.#execution = execution;
    this.#part = part;
    this.#merger = new FrameMerger(shape, undefined, {
      behindMsMax: BEHIND_MS_MAX,
      // Decoded again: merging consumes the frame.
      onTaken: (core, bytes) => this.#onTaken(core, readFrame(bytes, shape)),
    });
    this.#writer = new FrameWriter(this.#merger.stats);
  }

  /** A core starts to generate load; windows wait for it. */
  attach(core: number): void {
    this.#merger.attach(core);
    this.#member(core).isUnderWay = true;
  }

  /** Returns the last retained frame of the core; null if the bytes are no valid frame. */
  take(core: number, { bytes, health }: CoreFrame, now: number): number | null {
    const { held, sound } = this.#merger.receive(core, bytes);
    if (!sound) return null;
    // A delta to a frame that is not retained here: the core sends a full one next.
    if (held === 0) return held;
    const member = this.#member(core);
    member.health = health;
    member.version++;
    this.#newsAt = Math.min(this.#newsAt, now);
    return held;
  }

  #onTaken(core: number, frame: Frame | undefined): void {
    if (frame !== undefined) this.#member(core).own.take(frame);
  }

  /** A core's load has finished or the core is gone; stops waiting for it. */
  ended(core: number): void {
    const member = this.#members.get(core);
    if (member === undefined) return;
    member.isUnderWay = false;
    this.#merger.ended(core);
  }

  has(core: number): boolean {
    return this.#members.has(core);
  }

  /** Some frames of the cores are unreported. */
  get hasNews(): boolean {
    return this.#newsAt !== Number.POSITIVE_INFINITY;
  }

  /** Nothing runs, and the leader has everything. */
  get isOver(): boolean {
    return [...this.#members.values()].every(
      ({ held, isUnderWay, version }) => !isUnderWay && held === version,
    );
  }

  /** When the next frame is due even if some cores have not reported; infinite without news. */
  get dueAt(): number {
    return Math.max(this.#notBefore, this.#newsAt + GATHER_MS);
  }

  /** Returns the next frame if every running core has reported or the wait is over. */
  next(now: number): MergedFigures | null {
    if (!this.hasNews || now < this.#notBefore) return null;
    if (now < this.dueAt && !this.#haveAllReported()) return null;
    if (this.#writer.isDue()) return this.write(now);
    // The leader has not acknowledged recent frames yet.
    this.#notBefore = now + GATHER_MS;
    return null;
  }

  #haveAllReported(): boolean {
    for (const { isUnderWay, sent, version } of this.#members.values())
      if (isUnderWay && version === sent) return false;
    return true;
  }

  /** Returns everything the leader has not acknowledged. */
  write(now: number): MergedFigures {
    this.#newsAt = Number.POSITIVE_INFINITY;
    this.#notBefore = now + INTERVAL_MS_MIN;
    const frame = this.#merger.stats.nextFrame;
    const cores: CoreFigures[] = [];
    const members: Sent["members"][number][] = [];
    for (const [core, member] of this.#members) {
      const { health, held, own, sent, version } = member;
      if (version === held) continue;
      members.push({ member, version, own: own.nextFrame });
      member.sent = version;
      const { requests } = this.#merger.progressOf(core);
      cores.push({ core, requests, health, heard: version !== sent, own: own.write() });
    }
    this.#sentFrames.push({ frame, members });
    if (this.#sentFrames.length > SENT_MAX) this.#sentFrames.shift();
    return { execution: this.#execution, part: this.#part, bytes: this.#writer.write(), cores };
  }

  /** The leader has this merged frame; 0 for none. */
  acknowledged(frame: number): void {
    if (frame === 0) {
      this.restart();
      return;
    }
    this.#writer.acknowledged(frame);
    const sent = this.#sentFrames.find((one) => one.frame === frame);
    this.#sentFrames = this.#sentFrames.filter((one) => one.frame > frame);
    for (const { member, own, version } of sent?.members ?? []) {
      member.own.acknowledged(own);
      member.held = Math.max(member.held, version);
    }
  }

  /** Forgets acknowledgements for a new leader. Returns false if there is nothing to send. */
  restart(): boolean {
    this.#writer.acknowledged(0);
    this.#sentFrames = [];
    let isAny = false;
    for (const member of this.#members.values()) {
      member.own.acknowledged(0);
      member.held = 0;
      isAny ||= member.version > 0;
    }
    return isAny;
  }

  #member(core: number): Member {
    let member = this.#members.get(core);
    if (member === undefined) {
      const health = { cpu: 0, residentBytes: 0, activeUsers: 0 };
      const nothing = { version: 0, sent: 0, held: 0 };
      member = { own: new OwnFigures(), health, isUnderWay: false, ...nothing };
      this.#members.set(core, member);
    }
    return member;
  }
}
