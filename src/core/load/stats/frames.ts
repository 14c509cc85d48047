/**
 * Statistics as bytes. A numbered frame contains all changes after an earlier one, the last that its receiver has
 * acknowledged; values are absolute, and windows are included once they are complete. A frame written against nothing
 * is full: it contains everything.
 *
 *   sender                                                  receiver
 *     frame 1, against 0 (full) ───────────────────────────▶  holds 1
 *     ◀──────────────────────────────────────── holds 1
 *     frame 2, against 1  ──────── lost ───────╳
 *     frame 3, against 1 ──────────────────────────────────▶  holds 3
 *     frame 3 again, or frame 2 late ──────────────────────▶  holds 3: nothing changes
 *     frame 9, against 8 ──────────────────────────────────▶  knows no 8: rejects, holds 3
 *
 * So no lost, late, duplicated or reordered frame changes a total or a window. Times are measured times of the sender:
 * the arrival time of a frame does not matter.
 */

import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { beginCells } from "./cell-buffer.ts";
import { GIVEN_UP_BYTES } from "./given-up-names.ts";
import { GROUP_SHAPE } from "./group-stats.ts";
import { type MetricChanges, readMetrics } from "./metrics.ts";
import { type Fold, type Name, type NameTable, ROWS_MAX, readName, writeName } from "./names.ts";
import { type NewSamples, readSamples } from "./samples.ts";
import { stepShape } from "./step-stats.ts";
import { readTally, type Tally, type TallyChanges, type TallyShape } from "./tally.ts";
import { WINDOW_MS, WINDOWS_MAX, type Window, type WindowStore } from "./window-store.ts";
import {
  type LoadWindow,
  readLoadWindow,
  readStepWindow,
  type StepWindow,
  writeLoadWindow,
  writeStepWindow,
} from "./windows.ts";
import {
  CHECK_SHAPE,
  type Moment,
  RUN_SHAPE,
  type StatsShape,
  type WorkflowStats,
} from "./workflow-stats.ts";

const FRAME_VERSION = 8;
/** Frames that may wait for an acknowledgement, 100 s of them; beyond that the next one is full. */
const UNACKNOWLEDGED_MAX = 1_000;
/**
 * Unacknowledged frames, a second of them, beyond which a receiver is slow; it then gets one a second. Each frame
 * repeats unacknowledged changes, so ten a second would grow, in the memory of the sender, faster than it reads.
 */
const UNDER_WAY_MAX = 10;
const LATE_EVERY = 10;
/** Windows of one step in one frame: all folded ones and all recent ones. */
const WINDOWS_TOLD_MAX = WINDOWS_MAX + 1_000;

/** How much of a table of names a frame contained. */
interface SentNames {
  readonly names: number;
  readonly folds: number;
  /** Version of the names given up. */
  readonly givenUp: number;
}

const NONE_GIVEN_UP = new Uint8Array(0);
const NO_NAMES: SentNames = { names: 0, folds: 0, givenUp: 0 };

/** Position of a frame in the append-only lists. */
interface Mark {
  readonly frame: number;
  readonly names: readonly [steps: SentNames, checks: SentNames, groups: SentNames];
  readonly samples: number;
  readonly horizonMs: number;
}

const NOTHING_TOLD: Mark = {
  frame: 0,
  names: [NO_NAMES, NO_NAMES, NO_NAMES],
  samples: 0,
  horizonMs: 0,
};

/** Writes the frames of one sender to one receiver after the other. */
export class FrameWriter {
  readonly #stats: WorkflowStats;
  readonly #writer = new ByteWriter(4_096);
  #marks: Mark[] = [];
  #held = 0;
  /** Frames without an acknowledgement. */
  #underWay = 0;
  #passedOver = 0;

  constructor(stats: WorkflowStats) {
    this.#stats = stats;
  }

  /** Records the frame that the receiver retains; 0 for none. A late acknowledgement only makes a frame longer. */
  acknowledged(frame: number): void {
    this.#held = frame;
    // A receiver that retains nothing has responded all the same.
    this.#underWay = frame === 0 ? 0 : Math.max(0, this.#stats.nextFrame - 1 - frame);
  }

  /** Called when a frame could be written, ten times a second: false at times while the receiver is slow. */
  isDue(): boolean {
    if (this.#underWay <= UNDER_WAY_MAX || ++this.#passedOver >= LATE_EVERY) {
      this.#passedOver = 0;
      return true;
    }
    return false;
  }

  /** `full`: against nothing, whatever the receiver retains. */
  write(full = false): Uint8Array {
    const stats = this.#stats;
    const writer = this.#writer;
    const known = full ? undefined : this.#marks.find(({ frame }) => frame === this.#held);
    const { frame: since, horizonMs, names, samples } = known ?? NOTHING_TOLD;
    writer.clear();
    writer.uint8(FRAME_VERSION);
    writer.varint(stats.nextFrame);
    writer.varint(since);
    writeMoment(writer, stats);
    writeNames(writer, stats.stepNames, names[0]);
    writeNames(writer, stats.checkNames, names[1]);
    writeNames(writer, stats.groupNames, names[2]);
    stats.run.write(writer, since);
    writeTallies(
      writer,
      tallies(stats.stepNames, (at) => stats.step(at).tally),
      since,
    );
    writeTallies(
      writer,
      tallies(stats.checkNames, (at) => stats.check(at)),
      since,
    );
    writeTallies(
      writer,
      tallies(stats.groupNames, (at) => stats.group(at).tally),
      since,
    );
    stats.metrics.write(writer, since);
    stats.samples.write(writer, samples);
    this.#writeWindows(horizonMs);
    this.#remember();
    return writer.take();
  }

  #writeWindows(fromMs: number): void {
    const stats = this.#stats;
    const writer = this.#writer;
    const complete = <Content>(store: WindowStore<Content>) =>
      fromMs >= stats.horizonMs ? [] : store.over(fromMs, stats.horizonMs);
    writeWindows(writer, complete(stats.load), writeLoadWindow);
    const sent = stats.stepNames.list
      .map((_, step) => ({ step, windows: complete(stats.windowsOf(step)) }))
      .filter(({ windows }) => windows.length > 0);
    writer.varint(sent.length);
    for (const { step, windows } of sent) {
      writer.varint(step);
      writeWindows(writer, windows, writeStepWindow);
    }
  }

  #remember(): void {
    const { checkNames, groupNames, horizonMs, nextFrame: frame, stepNames } = this.#stats;
    const samples = this.#stats.samples.list.length;
    const names = [
      sentNamesOf(stepNames),
      sentNamesOf(checkNames),
      sentNamesOf(groupNames),
    ] as const;
    this.#marks = this.#marks.filter((mark) => mark.frame >= this.#held).slice(-UNACKNOWLEDGED_MAX);
    this.#marks.push({ frame, names, samples, horizonMs });
    this.#stats.nextFrame++;
    this.#underWay++;
  }
}

function writeMoment(writer: ByteWriter, { horizonMs, moment }: WorkflowStats): void {
  writer.float64(moment.measuredMs);
  writer.uint8(moment.warmingUp ? 1 : 0);
  writer.float64(moment.target);
  writer.varint(moment.arrivalsWaiting);
  writer.varint(Math.round(horizonMs / WINDOW_MS));
}

function sentNamesOf({ folds, givenUp, list }: NameTable): SentNames {
  return { names: list.length, folds: folds.length, givenUp: givenUp?.version ?? 0 };
}

function writeNames(
  writer: ByteWriter,
  { folds, givenUp, list }: NameTable,
  sent: SentNames,
): void {
  writer.varint(sent.names);
  writer.varint(list.length - sent.names);
  for (const name of list.slice(sent.names)) writeName(writer, name);
  writer.varint(sent.folds);
  writer.varint(folds.length - sent.folds);
  for (const { from, into } of folds.slice(sent.folds)) {
    writer.varint(from);
    writer.varint(into);
  }
  const isNew = givenUp !== null && givenUp.version > sent.givenUp;
  writer.bytes(isNew ? givenUp.bytes : NONE_GIVEN_UP);
}

function tallies({ list }: NameTable, tallyOf: (number: number) => Tally): Tally[] {
  return list.map((_, number) => tallyOf(number));
}

function writeTallies(writer: ByteWriter, all: readonly Tally[], since: number): void {
  const changed = [...all.entries()].filter(([, { changedIn }]) => changedIn > since);
  writer.varint(changed.length);
  for (const [number, tally] of changed) {
    writer.varint(number);
    tally.write(writer, since);
  }
}

function writeWindows<Content>(
  writer: ByteWriter,
  windows: readonly Window<Content>[],
  write: (writer: ByteWriter, content: Content) => void,
): void {
  writer.varint(windows.length);
  for (const { content, startMs, widthMs } of windows) {
    writer.varint(Math.round(startMs / WINDOW_MS));
    writer.varint(Math.round(widthMs / WINDOW_MS));
    write(writer, content);
  }
}

type Numbered<Item> = readonly (readonly [number: number, item: Item])[];

/** One decoded and validated frame. */
export interface Frame {
  readonly number: number;
  /** The frame it is written against; 0 when it is full. */
  readonly since: number;
  readonly moment: Moment;
  readonly horizonMs: number;
  readonly names: readonly [steps: NewNames, checks: NewNames, groups: NewNames];
  readonly run: TallyChanges;
  readonly steps: Numbered<TallyChanges>;
  readonly checks: Numbered<TallyChanges>;
  readonly groups: Numbered<TallyChanges>;
  readonly metrics: readonly MetricChanges[];
  readonly samples: NewSamples;
  readonly load: readonly Window<LoadWindow>[];
  readonly windows: Numbered<readonly Window<StepWindow>[]>;
}

/** Names from a number on, and changes in which of them are kept. */
export interface NewNames {
  readonly from: number;
  readonly list: readonly Name[];
  /** Rows that were folded, from a number on. */
  readonly foldsFrom: number;
  readonly folds: readonly Fold[];
  /** Names that the sender gave up so far; null when the frame omits them. */
  readonly givenUp: Uint8Array | null;
}

/** Undefined when the bytes are not a frame of this version and shape. Its cells are valid until the next is read. */
export function readFrame(bytes: Uint8Array, shape: StatsShape): Frame | undefined {
  beginCells();
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== FRAME_VERSION) return undefined;
  const [number, since] = [reader.varint(), reader.varint()];
  const measuredMs = reader.float64();
  const [warmingUp, target] = [reader.uint8() === 1, reader.float64()];
  const moment = { measuredMs, warmingUp, target, arrivalsWaiting: reader.varint() };
  const horizonMs = reader.varint() * WINDOW_MS;
  if (reader.failed || number <= since || !soundMoment(moment)) return undefined;
  const steps = readNames(reader);
  const checks = steps && readNames(reader);
  const groups = checks && readNames(reader);
  const run = groups && readTally(reader, RUN_SHAPE);
  if (run === undefined) return undefined;
  const step = stepShape(shape.errorKinds, shape.corrected);
  const stepTallies = readTallies(reader, step);
  const checkTallies = stepTallies && readTallies(reader, CHECK_SHAPE);
  const groupTallies = checkTallies && readTallies(reader, GROUP_SHAPE);
  const metrics = groupTallies && readMetrics(reader);
  const samples = metrics && readSamples(reader, shape.errorKinds);
  const load = samples && readWindows(reader, readLoadWindow);
  const windows = load && readList(reader, (one) => readWindows(one, readStepWindow));
  if (windows === undefined || reader.failed || reader.remaining > 0) return undefined;
  return {
    number,
    since,
    moment,
    horizonMs,
    names: [steps, checks, groups],
    run,
    steps: stepTallies,
    checks: checkTallies,
    groups: groupTallies,
    metrics,
    samples,
    load,
    windows,
  } as Frame;
}

function soundMoment({ measuredMs, target }: Moment): boolean {
  return measuredMs >= 0 && target >= 0 && Number.isFinite(measuredMs + target);
}

function readNames(reader: ByteReader): NewNames | undefined {
  const from = reader.varint();
  const length = reader.varint();
  if (reader.failed || from + length > ROWS_MAX) return undefined;
  const list: Name[] = [];
  for (let i = 0; i < length; i++) {
    const name = readName(reader);
    if (name === undefined) return undefined;
    list.push(name);
  }
  const [foldsFrom, count] = [reader.varint(), reader.varint()];
  if (reader.failed || foldsFrom + count > ROWS_MAX) return undefined;
  const folds = Array.from({ length: count }, () => ({
    from: reader.varint(),
    into: reader.varint(),
  }));
  const givenUp = reader.bytes(GIVEN_UP_BYTES);
  if (reader.failed || (givenUp.length > 0 && givenUp.length < GIVEN_UP_BYTES)) return undefined;
  return { from, list, foldsFrom, folds, givenUp: givenUp.length === 0 ? null : givenUp };
}

function readTallies(
  reader: ByteReader,
  shape: TallyShape,
): (readonly [number, TallyChanges])[] | undefined {
  return readList(reader, (one) => readTally(one, shape));
}

function readList<Item>(
  reader: ByteReader,
  read: (reader: ByteReader) => Item | undefined,
): (readonly [number, Item])[] | undefined {
  const length = reader.varint();
  if (reader.failed || length > ROWS_MAX) return undefined;
  const items: (readonly [number, Item])[] = [];
  for (let i = 0; i < length; i++) {
    const number = reader.varint();
    const item = read(reader);
    if (item === undefined) return undefined;
    items.push([number, item]);
  }
  return items;
}

function readWindows<Content>(
  reader: ByteReader,
  read: (reader: ByteReader) => Content | undefined,
): Window<Content>[] | undefined {
  const length = reader.varint();
  if (reader.failed || length > WINDOWS_TOLD_MAX) return undefined;
  const windows: Window<Content>[] = [];
  for (let i = 0; i < length; i++) {
    const startMs = reader.varint() * WINDOW_MS;
    const widthMs = reader.varint() * WINDOW_MS;
    const content = read(reader);
    if (content === undefined || widthMs <= 0) return undefined;
    windows.push({ startMs, widthMs, content });
  }
  return windows;
}
