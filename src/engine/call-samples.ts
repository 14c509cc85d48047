/**
 * Sampled calls as JSON lines: a random share of all measured calls. They are reported with the frames; calls beyond
 * the limit are counted and dropped.
 */

import { sampledCall } from "../core/load/stats/samples.ts";
import { type CallRecord, hasFirstByte } from "../protocols/protocol.ts";
import { idsOf } from "../protocols/trace-context.ts";

/** Between two frames: some 5,000 per second, more than anybody reads and too few for a core to notice. */
const CALLS_MAX = 1_000;

/** Calls sampled since the last report. */
export interface SampledCalls {
  /** One line per call. */
  readonly text: string;
  readonly calls: number;
  /** Sampled and dropped. */
  readonly dropped: number;
}

export class CallSamples {
  readonly #share: number;
  readonly #workflow: string;
  readonly #stepName: (index: number) => string;
  #lines: string[] = [];
  #dropped = 0;
  /** Titles for results that do not say what was called. */
  readonly #titles = new WeakMap<CallRecord, string>();

  constructor(share: number, workflow: string, stepName: (index: number) => string) {
    this.#share = share;
    this.#workflow = workflow;
    this.#stepName = stepName;
  }

  entitle(record: CallRecord, title: string): void {
    this.#titles.set(record, title);
  }

  /** `lateMs`: delay after the intended start. */
  offer(index: number, record: CallRecord, lateMs: number): void {
    if (Math.random() >= this.#share) return;
    if (this.#lines.length >= CALLS_MAX) {
      this.#dropped++;
      return;
    }
    const { bytesIn, bytesOut, connectMs, endedAt, errorKind, firstByteAt, startedAt } = record;
    const service = endedAt - startedAt;
    const call = sampledCall(this.#titles.get(record) ?? record.title ?? "");
    const line = {
      ...{ at: new Date().toISOString(), workflow: this.#workflow, step: this.#stepName(index) },
      ...{ ok: errorKind === null, status: record.status, error: errorKind },
      ...{ latency_ms: rounded(service + lateMs), service_ms: rounded(service) },
      ...(hasFirstByte(record) ? { first_byte_ms: rounded(firstByteAt - startedAt) } : {}),
      ...(connectMs < 0 ? {} : { connect_ms: rounded(connectMs) }),
      ...(record.tlsMs < 0 ? {} : { tls_ms: rounded(record.tlsMs) }),
      ...tracedBy(record),
      ...{ bytes_in: bytesIn, bytes_out: bytesOut, call },
    };
    this.#lines.push(`${JSON.stringify(line)}\n`);
  }

  /** Returns null when nothing was sampled. */
  take(): SampledCalls | null {
    if (this.#lines.length === 0 && this.#dropped === 0) return null;
    const sampled = {
      text: this.#lines.join(""),
      calls: this.#lines.length,
      dropped: this.#dropped,
    };
    this.#lines = [];
    this.#dropped = 0;
    return sampled;
  }
}

/** Fields that lead from a slow call to its trace. */
function tracedBy({ traceparent = "" }: CallRecord): object {
  if (traceparent === "") return {};
  const { spanId, traceId } = idsOf(traceparent);
  return { trace_id: traceId, span_id: spanId };
}

/** Rounds to a microsecond; null for a phase that never began. */
function rounded(ms: number): number | null {
  return Number.isFinite(ms) ? Math.round(ms * 1_000) / 1_000 : null;
}
