/** Custom measured results: any code can be a step if it reports what it measured. */

import { errorText } from "../core/base/error-text.ts";
import { clock } from "../protocols/call.ts";
import type { ErrorKind } from "../protocols/errors.ts";
import { contentAsked } from "../protocols/failed-content.ts";
import { CallResult } from "../protocols/protocol.ts";

interface CustomMeasurement {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly status?: number;
  /** Omitted for a success. */
  readonly errorKind?: ErrorKind;
  readonly error?: string;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
}

export class CustomResult<Value = unknown> extends CallResult {
  override readonly protocol: string = "custom";
  readonly #value: Value;

  constructor(value: Value, measured: CustomMeasurement) {
    if (!(measured.endedAt >= measured.startedAt) || !Number.isFinite(measured.endedAt)) {
      throw new TypeError("a custom result needs startedAt and endedAt in milliseconds, in order");
    }
    const record = {
      errorKind: measured.errorKind ?? (measured.error === undefined ? null : "application"),
      status: measured.status ?? 0,
      startedAt: measured.startedAt,
      firstByteAt: measured.endedAt,
      endedAt: measured.endedAt,
      connectMs: -1,
      tlsMs: -1,
      bytesIn: measured.bytesIn ?? 0,
      bytesOut: measured.bytesOut ?? 0,
    };
    super(record, measured.error ?? null);
    this.#value = value;
  }

  /** In a flow, reading it of a failed step ends the iteration because of that step. */
  get value(): Value {
    contentAsked(this);
    return this.#value;
  }
}

/** Times a piece of work: `step("hash", () => measure(() => bcrypt.hash("secret", 10)))`. */
export async function measure<Value>(
  work: () => Value | Promise<Value>,
): Promise<CustomResult<Value | undefined>> {
  const startedAt = clock();
  try {
    const value = await work();
    return new CustomResult<Value | undefined>(value, { startedAt, endedAt: clock() });
  } catch (error) {
    return new CustomResult<Value | undefined>(undefined, {
      startedAt,
      endedAt: clock(),
      error: errorText(error),
    });
  }
}
