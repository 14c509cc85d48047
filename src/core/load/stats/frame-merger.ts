/**
 * Receiving side of frames: one part per sender, and all parts merged as they come. The result is again a
 * `WorkflowStats`, so it can be forwarded: a worker merges its cores and sends one frame for all of them.
 *
 *   core 0 ─ frames ─▶ part 0 ─┐
 *   core 1 ─ frames ─▶ part 1 ─┴─ by name ─▶ stats ─ FrameWriter ─▶ next receiver
 *
 * With a frame of several senders the receiver also gets the own metrics of each sender (`own-figures.ts`): the calls
 * are counted once, in the merged part, and its senders are known individually.
 *
 * A part keeps the totals it received, to compute by how much a frame raises them; its windows go straight into the
 * merged ones, each once. The merged horizon is how far every active part has come; parts that have finished, are
 * closed or are far behind do not delay it.
 */

import { type Frame, type NewNames, readFrame } from "./frames.ts";
import { GROUP_SHAPE } from "./group-stats.ts";
import { KnownNames } from "./known-names.ts";
import { MetricTotals } from "./metrics.ts";
import type { NameTable } from "./names.ts";
import { OWN_SHAPE } from "./own-figures.ts";
import { requestsOf, stepShape } from "./step-stats.ts";
import { Tally } from "./tally.ts";
import { WindowStore } from "./window-store.ts";
import { LOAD_RULES, type LoadWindow } from "./windows.ts";
import {
  CHECK_SHAPE,
  type Moment,
  RUN_SHAPE,
  type StatsShape,
  WorkflowStats,
} from "./workflow-stats.ts";

/** A part this far behind the furthest one delays no window: it has stalled. */
const BEHIND_MS_MAX = 5_000;

/** State received from one sender, by its own numbers; or from several senders together. */
interface Part {
  /** Number of the last frame received. */
  held: number;
  moment: Moment;
  horizonMs: number;
  /** Active: more windows are to come. */
  awaited: boolean;
  /** Ignored from now on. */
  closed: boolean;
  readonly steps: KnownNames;
  readonly checks: KnownNames;
  readonly groups: KnownNames;
  readonly run: Tally;
  readonly metrics: MetricTotals;
  /** Number of failure samples received. */
  samples: number;
  /** Load of this part alone: its CPU and lag are not merged. */
  readonly load: WindowStore<LoadWindow>;
  /** The part that contains its calls merged with those of others; null: it sends them itself. */
  within: Part | null;
  /** Requests of it that are counted there. */
  requestsWithin: number;
  /** The senders whose calls it contains; none when it belongs to a single one. */
  readonly members: Set<Part>;
}

/** Own metrics of one sender beside the merged frame that has its calls. */
interface OwnPart {
  readonly core: number;
  readonly requests: number;
  readonly own: Uint8Array;
}

interface MergerOptions {
  /** Windows wait for a part that is at most this far behind. */
  readonly behindMsMax?: number;
  /** Called when a frame of a sender was received. */
  readonly onTaken?: (from: number, bytes: Uint8Array) => void;
}

/** The frame that is retained now, for the sender to write against; `sound` is false for bytes that are not a frame. */
interface Received {
  readonly held: number;
  readonly sound: boolean;
}

export class FrameMerger {
  /** All parts together. */
  readonly stats: WorkflowStats;
  readonly #parts = new Map<number | string, Part>();
  /** Parts that send their calls themselves, in their order. */
  readonly #tellers = new Set<Part>();
  readonly #behindMsMax: number;
  readonly #onTaken: (from: number, bytes: Uint8Array) => void;

  constructor(
    shape: StatsShape,
    names?: ConstructorParameters<typeof WorkflowStats>[1],
    { behindMsMax = BEHIND_MS_MAX, onTaken = () => undefined }: MergerOptions = {},
  ) {
    this.stats = new WorkflowStats(shape, names);
    this.#behindMsMax = behindMsMax;
    this.#onTaken = onTaken;
  }

  /** Registers an expected sender: windows wait for it. */
  attach(part: number): void {
    this.#part(part);
    this.#update();
  }

  /** Marks the measured time of a sender as over: it may send more, but no window waits for it. */
  ended(part: number): void {
    const held = this.#part(part);
    held.awaited = false;
    if (held.within !== null) judgeMembers(held.within);
    this.#update();
  }

  /** Closes a lost or replaced sender: its data stays, and nothing is added to it. */
  close(part: number): void {
    this.#part(part).closed = true;
    this.ended(part);
  }

  /** Applies a frame if it follows the retained one; changes nothing otherwise. */
  receive(from: number, bytes: Uint8Array): Received {
    const part = this.#part(from);
    const frame = readFrame(bytes, this.stats.shape);
    if (frame === undefined) return { held: part.held, sound: false };
    if (part.closed || part.within !== null || !follows(frame, part))
      return { held: part.held, sound: true };
    if (!consistent(frame, part)) return { held: part.held, sound: false };
    this.#apply(part, frame);
    this.#onTaken(from, bytes);
    return { held: part.held, sound: true };
  }

  /**
   * Applies a frame of several senders together, and the own metrics of each: both or neither. Ignored when all of the
   * senders are.
   */
  receiveMerged(from: string, bytes: Uint8Array, own: readonly OwnPart[]): Received {
    const held = this.#parts.get(from)?.held ?? 0;
    const frame = readFrame(bytes, this.stats.shape);
    if (frame === undefined) return { held, sound: false };
    const senders = own.map(({ core }) => this.#part(core));
    // A sender that sent its calls itself must not send them again through another.
    if (senders.some((one) => one.within === null && one.held > 0)) return { held, sound: true };
    const merged = this.#part(from);
    for (const sender of senders) this.#join(sender, merged);
    judgeMembers(merged);
    const isSound = consistent(frame, merged);
    if (merged.closed || !isSound || !follows(frame, merged)) {
      this.#update();
      return { held, sound: isSound };
    }
    // Before the next frame is read, which overwrites its cells.
    this.#apply(merged, frame);
    for (const [at, sender] of senders.entries()) this.#applyOwn(sender, own[at]);
    return { held: merged.held, sound: true };
  }

  #join(sender: Part, merged: Part): void {
    sender.within = merged;
    merged.members.add(sender);
    this.#tellers.delete(sender);
  }

  #applyOwn(part: Part, own: OwnPart | undefined): void {
    if (own === undefined) return;
    part.requestsWithin = Math.max(part.requestsWithin, own.requests);
    const frame = readFrame(own.own, OWN_SHAPE);
    if (frame === undefined || !follows(frame, part)) return;
    // The merged part arrived with the calls.
    part.run.raise(frame.run, null, 0);
    for (const window of frame.load) if (window.startMs >= part.horizonMs) part.load.add(window);
    advance(part, frame);
  }

  /** Load generated by one sender, over time. */
  loadOf(part: number): WindowStore<LoadWindow> | undefined {
    return this.#parts.get(part)?.load;
  }

  /** Counts of one sender for the workflow as a whole. */
  runOf(part: number): Tally | undefined {
    return this.#parts.get(part)?.run;
  }

  /** Position of one sender, and its requests by then. */
  progressOf(part: number): { readonly measuredMs: number; readonly requests: number } {
    const { moment, requestsWithin, steps, within } = this.#part(part);
    const requests =
      within === null
        ? steps.merged.reduce((sum, _, step) => sum + requestsOf(steps.received.countsOf(step)), 0)
        : requestsWithin;
    return { measuredMs: moment.measuredMs, requests };
  }

  #apply(part: Part, frame: Frame): void {
    const { stats } = this;
    const now = stats.nextFrame;
    this.#learn(part, frame.names);
    part.run.raise(frame.run, stats.run, now);
    raiseAll(part.steps, frame.steps, (number) => stats.step(number).tally, now);
    raiseAll(part.checks, frame.checks, (number) => stats.check(number), now);
    raiseAll(part.groups, frame.groups, (number) => stats.group(number).tally, now);
    for (const changes of frame.metrics) part.metrics.raise(changes, stats.metrics, now);
    this.#addSamples(part, frame);
    this.#addWindows(part, frame);
    advance(part, frame);
    this.#update();
  }

  #addSamples(part: Part, { samples: { from, list } }: Frame): void {
    for (const sample of list.slice(Math.max(0, part.samples - from))) {
      const step = part.steps.merged[sample.step];
      if (step !== undefined) this.stats.samples.add({ ...sample, step });
    }
    part.samples = Math.max(part.samples, from + list.length);
  }

  /**
   * Windows that this part sent before are below its horizon. After more than a minute without an acknowledgement one
   * of them may arrive folded with its neighbours: then its new half is excluded from the windows, and included in the
   * totals.
   */
  #addWindows(part: Part, frame: Frame): void {
    for (const window of frame.load) {
      if (window.startMs < part.horizonMs) continue;
      this.stats.load.add(window);
      part.load.add(window);
    }
    for (const [number, windows] of frame.windows) {
      const step = part.steps.merged[number];
      if (step === undefined) continue;
      for (const window of windows)
        if (window.startMs >= part.horizonMs) this.stats.addWindow(step, window);
    }
  }

  #learn(part: Part, [steps, checks, groups]: Frame["names"]): void {
    const { stats } = this;
    this.#learnTable("steps", part, steps, stats.stepNames, (row) => stats.foldStep(row));
    this.#learnTable("checks", part, checks, stats.checkNames, (row) => stats.foldCheck(row));
    this.#learnTable("groups", part, groups, stats.groupNames, (row) => stats.foldGroup(row));
  }

  /** Folds rows that miss calls, because a part gave up their name. */
  #learnTable(
    which: "steps" | "checks" | "groups",
    part: Part,
    news: NewNames,
    names: NameTable,
    fold: (row: number) => void,
  ): void {
    const before = names.list.length;
    const rows = part[which].learn(news, names);
    const others = names.list.length > before ? this.#parts.values() : [];
    for (const one of others) rows.push(...one[which].missedRows(names));
    if (rows.length === 0) return;
    for (const row of rows) fold(row);
    for (const one of this.#parts.values()) one[which].follow(names);
  }

  /** After every frame: one pass over the sending parts, of which there may be hundreds. */
  #update(): void {
    let [furthest, slowest] = [0, Number.POSITIVE_INFINITY];
    let [measuredMs, target, arrivalsWaiting] = [0, 0, 0];
    let warmingUp = this.#tellers.size > 0;
    for (const { awaited, horizonMs, moment } of this.#tellers) {
      if (horizonMs > furthest) furthest = horizonMs;
      if (moment.measuredMs > measuredMs) measuredMs = moment.measuredMs;
      if (!moment.warmingUp) warmingUp = false;
      arrivalsWaiting += moment.arrivalsWaiting;
      if (!awaited) continue;
      if (horizonMs < slowest) slowest = horizonMs;
      target += moment.target;
    }
    const known = Math.min(furthest, Math.max(slowest, furthest - this.#behindMsMax));
    this.stats.horizonMs = Math.max(this.stats.horizonMs, known);
    this.stats.moment = { measuredMs, warmingUp, target, arrivalsWaiting };
  }

  #part(from: number | string): Part {
    let part = this.#parts.get(from);
    if (part === undefined) {
      const { corrected, errorKinds } = this.stats.shape;
      part = {
        held: 0,
        moment: { measuredMs: 0, warmingUp: false, target: 0, arrivalsWaiting: 0 },
        horizonMs: 0,
        awaited: true,
        closed: false,
        steps: new KnownNames(stepShape(errorKinds, corrected)),
        checks: new KnownNames(CHECK_SHAPE),
        groups: new KnownNames(GROUP_SHAPE),
        run: new Tally(RUN_SHAPE),
        metrics: new MetricTotals(),
        samples: 0,
        load: new WindowStore<LoadWindow>(LOAD_RULES),
        within: null,
        requestsWithin: 0,
        members: new Set(),
      };
      this.#parts.set(from, part);
      this.#tellers.add(part);
    }
    return part;
  }
}

function follows({ number, since }: Frame, { held }: Part): boolean {
  return number > held && since <= held;
}

function advance(part: Part, { horizonMs, moment, number }: Frame): void {
  part.held = number;
  part.moment = moment;
  part.horizonMs = Math.max(part.horizonMs, horizonMs);
}

/** Active while any member is; ignored once all members are. */
function judgeMembers(merged: Part): void {
  merged.awaited = false;
  merged.closed = true;
  for (const { awaited, closed } of merged.members) {
    if (awaited) merged.awaited = true;
    if (!closed) merged.closed = false;
  }
}

/** True when every number in it was introduced by this frame or by a retained one. */
function consistent(frame: Frame, part: Part): boolean {
  const [steps, checks, groups] = frame.names;
  const counts = [
    part.steps.countWith(steps),
    part.checks.countWith(checks),
    part.groups.countWith(groups),
  ];
  const [stepCount = null, checkCount = null, groupCount = null] = counts;
  if (stepCount === null || checkCount === null || groupCount === null) return false;
  return (
    frame.steps.every(([number]) => number < stepCount) &&
    frame.windows.every(([number]) => number < stepCount) &&
    frame.checks.every(([number]) => number < checkCount) &&
    frame.groups.every(([number]) => number < groupCount)
  );
}

function raiseAll(
  { merged, received }: KnownNames,
  changed: Frame["steps"],
  wholeOf: (number: number) => Tally,
  frame: number,
): void {
  for (const [number, changes] of changed) {
    const into = merged[number];
    if (into !== undefined) received.raise(number, changes, wholeOf(into), frame);
  }
}
