/**
 * Job ids: `{region}-{milliseconds}-{gate}-{sequence}`, as `use1-1704931200000-gate42-00001`.
 *
 * A gate creates them without coordination: the gate's name distinguishes gates, and the rising pair (milliseconds,
 * sequence) distinguishes one gate's ids, also over clock steps and restarts, if every id found in the log is given to
 * `observe` first (LEDG-1). The last ids of a process may have been sent and never reached its own disk; so each
 * process starts above all it found, and at its own offset in every millisecond. The region is a hint for routing; the
 * authority of a job is its group's primary (LEDG-2). Ids sort by time within one region only; for time order use the
 * time part (LEDG-3).
 */

import { assert } from "../../base/assert.ts";
import type { Brand } from "../../base/brand.ts";
import { HLC_WALL_MS_MAX } from "../../base/hlc.ts";

export type JobId = Brand<string, "JobId">;

export const REGION_CODE_CHARACTERS_MAX = 16;
export const GATE_ID_CHARACTERS_MAX = 32;
const SEQUENCE_DIGITS = 5;
const SEQUENCE_MAX = 10 ** SEQUENCE_DIGITS - 1;
/** Leaves ten thousand ids per millisecond, wherever a process starts. */
export const FIRST_MAX = SEQUENCE_MAX - 9_999;

/** Ids with a later time are ignored: following one would use up the times an id can express. */
const OBSERVED_MS_MAX = HLC_WALL_MS_MAX / 2;

const PATTERN = new RegExp(
  `^([a-z0-9]{1,${REGION_CODE_CHARACTERS_MAX}})-(0|[1-9][0-9]{0,15})` +
    `-([a-z0-9]{1,${GATE_ID_CHARACTERS_MAX}})-([0-9]{${SEQUENCE_DIGITS}})$`,
);

interface JobIdParts {
  readonly region: string;
  readonly timestampMs: number;
  readonly gate: string;
  readonly sequence: number;
}

/** Null when the text is not a job id. */
export function parseJobId(text: string): JobIdParts | null {
  const [, region, timestamp, gate, sequence] = PATTERN.exec(text) ?? [];
  if (region === undefined || gate === undefined) return null;
  const timestampMs = Number(timestamp);
  if (timestampMs > HLC_WALL_MS_MAX) return null;
  return { region, timestampMs, gate, sequence: Number(sequence) };
}

export function formatJobId({ gate, region, sequence, timestampMs }: JobIdParts): JobId {
  assert(Number.isSafeInteger(timestampMs) && timestampMs >= 0, "a job id's time is positive");
  assert(sequence >= 0 && sequence <= SEQUENCE_MAX, "a job id's sequence has five digits");
  const digits = String(sequence).padStart(SEQUENCE_DIGITS, "0");
  return `${region}-${timestampMs}-${gate}-${digits}` as JobId;
}

/** Checks a name inside a job id: lower-case letters and digits, no dash. */
function isJobIdName(text: string, charactersMax: number): boolean {
  return text.length <= charactersMax && /^[a-z0-9]+$/.test(text);
}

export class JobIdMint {
  readonly #region: string;
  readonly #gate: string;
  /** Where this process begins within a millisecond. */
  readonly #first: number;
  #timestampMs = 0;
  #sequence: number;

  constructor(region: string, gate: string, first = 0) {
    assert(isJobIdName(region, REGION_CODE_CHARACTERS_MAX), "a region code is [a-z0-9]+");
    assert(isJobIdName(gate, GATE_ID_CHARACTERS_MAX), "a gate id is [a-z0-9]+");
    assert(first >= 0 && first < FIRST_MAX, "a process begins within the sequence");
    this.#first = first;
    this.#sequence = first;
    this.#region = region;
    this.#gate = gate;
  }

  next(wallMs: number): JobId {
    assert(Number.isSafeInteger(wallMs), "wall time is a whole number of milliseconds");
    if (wallMs > this.#timestampMs) {
      this.#timestampMs = wallMs;
      this.#sequence = this.#first;
    }
    if (this.#sequence === SEQUENCE_MAX) {
      // A full millisecond borrows the next one; the clock catches up.
      this.skip();
    }
    this.#sequence++;
    return formatJobId({
      region: this.#region,
      timestampMs: this.#timestampMs,
      gate: this.#gate,
      sequence: this.#sequence,
    });
  }

  /** On to a millisecond that no id found so far has. */
  skip(): void {
    this.#timestampMs++;
    this.#sequence = this.#first;
  }

  /** Observes an id read back from the log: if it is ours, later ones are larger. Ids of others are ignored. */
  observe(id: string): void {
    const parts = parseJobId(id);
    if (parts === null || parts.region !== this.#region || parts.gate !== this.#gate) return;
    if (parts.timestampMs < this.#timestampMs || parts.timestampMs > OBSERVED_MS_MAX) return;
    if (parts.timestampMs === this.#timestampMs) {
      this.#sequence = Math.max(this.#sequence, parts.sequence);
      return;
    }
    this.#timestampMs = parts.timestampMs;
    this.#sequence = parts.sequence;
  }
}
