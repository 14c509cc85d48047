/**
 * The statistics of one execution as bytes, written by a core 10 times a second and read by its
 * manager. Every number is cumulative and absolute; only cells that changed are sent. A frame that
 * comes twice changes nothing, and the last one before a core dies holds all its counts.
 */

import type { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import { Histogram } from "../core/run/stats/histogram.ts";

const FRAME_VERSION = 2;

/** The part of a frame that is not about single steps. */
export interface FrameHead {
  /** Milliseconds of measured time so far, warm-up and pauses excluded. */
  readonly measuredMs: number;
  readonly warmingUp: boolean;
  readonly iterations: number;
  /** Completed inside the measured time, whenever they were due. */
  readonly iterationsInside: number;
  readonly interruptedIterations: number;
  readonly arrivalsStarted: number;
  readonly arrivalsMissed: number;
  /** Users or rate asked for at this moment, this core's share. */
  readonly target: number;
  readonly checks: readonly { readonly passed: number; readonly failed: number }[];
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
  writer.varint(head.iterations);
  writer.varint(head.iterationsInside);
  writer.varint(head.interruptedIterations);
  writer.varint(head.arrivalsStarted);
  writer.varint(head.arrivalsMissed);
  writer.float64(head.target);
  writer.varint(head.checks.length);
  for (const check of head.checks) {
    writer.varint(check.passed);
    writer.varint(check.failed);
  }
  head.sendLagUs.encode(writer);
  head.waitedUs.encode(writer);
  head.loopLagUs.encode(writer);
}

const CHECKS_MAX = 10_000;

/** Undefined when the bytes are not a frame of this version. */
export function readFrameHead(reader: ByteReader): FrameHead | undefined {
  if (reader.uint8() !== FRAME_VERSION) return undefined;
  const measuredMs = reader.float64();
  const warmingUp = reader.uint8() === 1;
  const iterations = reader.varint();
  const iterationsInside = reader.varint();
  const interruptedIterations = reader.varint();
  const arrivalsStarted = reader.varint();
  const arrivalsMissed = reader.varint();
  const target = reader.float64();
  const count = reader.varint();
  if (count > CHECKS_MAX) return undefined;
  const checks = Array.from({ length: count }, () => ({
    passed: reader.varint(),
    failed: reader.varint(),
  }));
  const sendLagUs = Histogram.decode(reader);
  const waitedUs = Histogram.decode(reader);
  const loopLagUs = Histogram.decode(reader);
  if (reader.failed || sendLagUs === undefined || loopLagUs === undefined) return undefined;
  if (waitedUs === undefined) return undefined;
  return {
    measuredMs,
    warmingUp,
    iterations,
    iterationsInside,
    interruptedIterations,
    arrivalsStarted,
    arrivalsMissed,
    target,
    checks,
    sendLagUs,
    waitedUs,
    loopLagUs,
  };
}
