/**
 * The statistics of one execution as bytes, written by a core 10 times a second and read by its
 * manager. Every number is cumulative and absolute; only cells that changed are sent. A frame that
 * comes twice changes nothing, and the last one before a core dies holds all its counts.
 */

import type { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import { Histogram } from "../core/run/stats/histogram.ts";
import {
  NAMES_MAX,
  type Name,
  type NameTable,
  readName,
  writeName,
} from "../core/run/stats/names.ts";
import { OUTCOMES, type Outcome } from "./outcome.ts";

const FRAME_VERSION = 3;

/** The part of a frame that is not about single steps. */
export interface FrameHead {
  /** Milliseconds of measured time so far, warm-up and pauses excluded. */
  readonly measuredMs: number;
  readonly warmingUp: boolean;
  /** Iterations by how they ended. */
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Completed inside the measured time, whenever they were due. */
  readonly iterationsInside: number;
  readonly arrivalsStarted: number;
  readonly arrivalsMissed: number;
  /** Users or rate asked for at this moment, this core's share. */
  readonly target: number;
  readonly sendLagUs: Histogram;
  /** How long arrivals had waited that never began. */
  readonly waitedUs: Histogram;
  /** How late the core's event loop ran. */
  readonly loopLagUs: Histogram;
}

export function writeFrameHead(writer: ByteWriter, head: FrameHead): void {
  writer.uint8(FRAME_VERSION);
  writer.float64(head.measuredMs);
  writer.uint8(head.warmingUp ? 1 : 0);
  for (const outcome of OUTCOMES) writer.varint(head.outcomes[outcome]);
  writer.varint(head.iterationsInside);
  writer.varint(head.arrivalsStarted);
  writer.varint(head.arrivalsMissed);
  writer.float64(head.target);
  head.sendLagUs.encode(writer);
  head.waitedUs.encode(writer);
  head.loopLagUs.encode(writer);
}

/** Undefined when the bytes are not a frame of this version. */
export function readFrameHead(reader: ByteReader): FrameHead | undefined {
  if (reader.uint8() !== FRAME_VERSION) return undefined;
  const measuredMs = reader.float64();
  const warmingUp = reader.uint8() === 1;
  const [completed = 0, ended = 0, failed = 0, interrupted = 0] = OUTCOMES.map(() =>
    reader.varint(),
  );
  const iterationsInside = reader.varint();
  const arrivalsStarted = reader.varint();
  const arrivalsMissed = reader.varint();
  const target = reader.float64();
  const sendLagUs = Histogram.decode(reader);
  const waitedUs = Histogram.decode(reader);
  const loopLagUs = Histogram.decode(reader);
  if (reader.failed || sendLagUs === undefined || loopLagUs === undefined) return undefined;
  if (waitedUs === undefined) return undefined;
  return {
    measuredMs,
    warmingUp,
    outcomes: { completed, ended, failed, interrupted },
    iterationsInside,
    arrivalsStarted,
    arrivalsMissed,
    target,
    sendLagUs,
    waitedUs,
    loopLagUs,
  };
}

/** Names that no frame has told so far; the result is how many are told now. */
export function writeNewNames(writer: ByteWriter, table: NameTable, told: number): number {
  const fresh = table.list.slice(told);
  writer.varint(told);
  writer.varint(fresh.length);
  for (const name of fresh) writeName(writer, name);
  return table.list.length;
}

/** Adds what is new to the names of a part; false when the bytes are no such names. */
export function readNewNames(reader: ByteReader, names: Name[]): boolean {
  const told = reader.varint();
  const fresh = reader.varint();
  // One more than the limit: the name that stands for all others.
  if (reader.failed || told > names.length || told + fresh > NAMES_MAX + 1) return false;
  for (let at = told; at < told + fresh; at++) {
    const name = readName(reader);
    if (name === undefined) return false;
    names[at] ??= name;
  }
  return true;
}
