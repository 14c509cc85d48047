/**
 * The frames of a worker's cores of one execution, merged into one for the leader of the job:
 *
 *     core 0 ─ frames ─▶ ┐                 ┌─ one frame of all calls ─┐
 *     core 1 ─ frames ─▶ ┼─ FrameMerger ───┤                          ├─▶ the leader
 *     core 2 ─ frames ─▶ ┘                 └─ each core's own load ───┘
 *
 * Cores are acknowledged here, and write the next frame against what is held here; the leader acknowledges what is
 * merged. Another leader holds nothing, and is told all that any core has told so far.
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

/** Cores tell ten times a second, but not at the same moment: so long is waited for the others. */
const GATHER_MS = 100;
/** Between two merged frames, at least: cores that tell more often than they should are not told on as often. */
const INTERVAL_MS_MIN = 50;
/**
 * Windows wait for a core that is behind: what it tells of windows that were told on comes too late. Managers give a
 * core up that says nothing for this long.
 */
const BEHIND_MS_MAX = 30_000;
/** Merged frames that the leader has said nothing about, 100 s of them. */
const TOLD_MAX = 1_000;

interface Member {
  readonly own: OwnFigures;
  health: CoreVitals;
  /** It makes load: the others wait for its frame. */
  isUnderWay: boolean;
  /** Rises with each frame of it. */
  version: number;
  /** What of it the last merged frame told, and the last that was acknowledged. */
  told: number;
  held: number;
}

/** What one merged frame told. */
interface Told {
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
  #told: Told[] = [];
  /** When the first frame came that is not told on; infinite when all are. */
  #newsAt = Number.POSITIVE_INFINITY;
  /** Nothing is told on before then, unless something follows that it must precede. */
  #notBefore = 0;

  constructor(execution: number, part: string | null, shape: StatsShape) {
    this.#execution = execution;
    this.#part = part;
    this.#merger = new FrameMerger(shape, undefined, {
      behindMsMax: BEHIND_MS_MAX,
      // Read anew: what was merged is gone from the frame.
      onTaken: (core, bytes) => this.#onTaken(core, readFrame(bytes, shape)),
    });
    this.#writer = new FrameWriter(this.#merger.stats);
  }

  /** It begins to make load: windows wait for it. */
  attach(core: number): void {
    this.#merger.attach(core);
    this.#member(core).isUnderWay = true;
  }

  /** The frame of the core that is held now; null for bytes that are no frame. */
  take(core: number, { bytes, health }: CoreFrame, now: number): number | null {
    const { held, sound } = this.#merger.receive(core, bytes);
    if (!sound) return null;
    // It is written against a frame that is not held here: the next one is full.
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

  /** Its load is over, or it is gone: nobody waits for it. */
  ended(core: number): void {
    const member = this.#members.get(core);
    if (member === undefined) return;
    member.isUnderWay = false;
    this.#merger.ended(core);
  }

  has(core: number): boolean {
    return this.#members.has(core);
  }

  /** Some of what its cores told is not told on. */
  get hasNews(): boolean {
    return this.#newsAt !== Number.POSITIVE_INFINITY;
  }

  /** Nothing of it runs, and its leader has all of it. */
  get isOver(): boolean {
    return [...this.#members.values()].every(
      ({ held, isUnderWay, version }) => !isUnderWay && held === version,
    );
  }

  /** When its next frame is due, whoever of its cores has told nothing by then; infinite while there is no news. */
  get dueAt(): number {
    return Math.max(this.#notBefore, this.#newsAt + GATHER_MS);
  }

  /** The next frame, when every core that makes load has told something new or has had its time for that. */
  next(now: number): MergedFigures | null {
    if (!this.hasNews || now < this.#notBefore) return null;
    if (now < this.dueAt && !this.#haveAllTold()) return null;
    if (this.#writer.isDue()) return this.write(now);
    // The leader is late with what it has got.
    this.#notBefore = now + GATHER_MS;
    return null;
  }

  #haveAllTold(): boolean {
    for (const { isUnderWay, told, version } of this.#members.values())
      if (isUnderWay && version === told) return false;
    return true;
  }

  /** All that its leader has not acknowledged. */
  write(now: number): MergedFigures {
    this.#newsAt = Number.POSITIVE_INFINITY;
    this.#notBefore = now + INTERVAL_MS_MIN;
    const frame = this.#merger.stats.nextFrame;
    const cores: CoreFigures[] = [];
    const members: Told["members"][number][] = [];
    for (const [core, member] of this.#members) {
      const { health, held, own, told, version } = member;
      if (version === held) continue;
      members.push({ member, version, own: own.nextFrame });
      member.told = version;
      const { requests } = this.#merger.progressOf(core);
      cores.push({ core, requests, health, heard: version !== told, own: own.write() });
    }
    this.#told.push({ frame, members });
    if (this.#told.length > TOLD_MAX) this.#told.shift();
    return { execution: this.#execution, part: this.#part, bytes: this.#writer.write(), cores };
  }

  /** The leader holds this merged frame; 0 for none. */
  acknowledged(frame: number): void {
    if (frame === 0) {
      this.restart();
      return;
    }
    this.#writer.acknowledged(frame);
    const told = this.#told.find((one) => one.frame === frame);
    this.#told = this.#told.filter((one) => one.frame > frame);
    for (const { member, own, version } of told?.members ?? []) {
      member.own.acknowledged(own);
      member.held = Math.max(member.held, version);
    }
  }

  /** Another leader holds nothing. False when there is nothing to tell it. */
  restart(): boolean {
    this.#writer.acknowledged(0);
    this.#told = [];
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
      const nothing = { version: 0, told: 0, held: 0 };
      member = { own: new OwnFigures(), health, isUnderWay: false, ...nothing };
      this.#members.set(core, member);
    }
    return member;
  }
}
