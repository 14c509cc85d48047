/** Limit of the disk alone: writes of one size into a zero-filled file, each followed by fdatasync. */

import { closeSync, fdatasyncSync, fsyncSync, openSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

const FILE_BYTES = 67_108_864;

/** The mean time of one fdatasync after a write of `bytes`, in milliseconds; the write is not counted. */
export function measureSync(directory: string, bytes: number, rounds: number): number {
  const path = join(directory, "sync-probe");
  const file = openSync(path, "w");
  const zeros = Buffer.alloc(1_048_576);
  for (let at = 0; at < FILE_BYTES; at += zeros.length) writeSync(file, zeros, 0, zeros.length, at);
  fsyncSync(file);
  const batch = Buffer.alloc(bytes, 7);
  let total = 0;
  for (let round = 0, at = 0; round < rounds; round++, at += bytes) {
    if (at + bytes > FILE_BYTES) at = 0;
    writeSync(file, batch, 0, bytes, at);
    const started = performance.now();
    fdatasyncSync(file);
    total += performance.now() - started;
  }
  closeSync(file);
  unlinkSync(path);
  return total / rounds;
}
