/**
 * Drives the writer: effects become I/O, finished I/O becomes inputs. Appends of one turn of the event
 * loop are taken together; one timer stands for the writer's next deadline.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { assertNever } from "../../core/base/assert.ts";
import { type Millis, millis } from "../../core/base/brand.ts";
import type { WalWriter } from "../../core/ledger/log/writer.ts";
import type {
  WriterEffect,
  WriterInput,
  WriterOperation,
} from "../../core/ledger/log/writer-types.ts";
import { startTimer, type Timer } from "../../host/timer.ts";
import { systemCode } from "./errors.ts";
import type { SegmentIo } from "./segment-io.ts";
import type { Segments } from "./segments.ts";

export type EngineAnswer = Exclude<
  WriterEffect,
  { kind: "createSegment" | "write" | "sync" | "truncate" | "sealed" }
>;

const IO_KINDS = new Set<WriterEffect["kind"]>(["createSegment", "write", "sync", "truncate"]);

interface EngineHandlers {
  /** Just before the writer looks at its queue. */
  readonly beforeTick: () => void;
  readonly answer: (effect: EngineAnswer) => void;
}

export class WalEngine {
  readonly #writer: WalWriter;
  readonly #io: SegmentIo;
  readonly #segments: Segments;
  readonly #handlers: EngineHandlers;
  #scheduled = false;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #inFlight = 0;
  #creating: Promise<void> = Promise.resolve();
  /** Work beside the log that `idle` waits for. */
  readonly #aside = new Set<Promise<void>>();

  constructor(writer: WalWriter, io: SegmentIo, segments: Segments, handlers: EngineHandlers) {
    this.#writer = writer;
    this.#io = io;
    this.#segments = segments;
    this.#handlers = handlers;
  }

  /** A tick at the end of this turn of the event loop. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.step({ kind: "tick" });
    });
  }

  step(input: WriterInput): void {
    this.#handlers.beforeTick();
    for (const effect of this.#writer.step(input, monotonicNow())) this.#run(effect);
    this.#arm();
  }

  /** Resolves when no segment is being made. */
  prepared(): Promise<void> {
    return this.#creating;
  }

  /** Waits for calls under way before the files are closed: their descriptors must not go to others. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    while (this.#inFlight > 0) await nextTurn();
    await Promise.allSettled(this.#aside);
    await this.#io.close();
  }

  #run(effect: WriterEffect): void {
    if (IO_KINDS.has(effect.kind)) this.#inFlight++;
    switch (effect.kind) {
      case "createSegment":
        this.#create(effect.segmentId, effect.bytes);
        return;
      case "write":
        this.#io.write(effect.segmentId, effect.offset, effect.chunks, (error, bytes) =>
          this.#finish("write", error, { kind: "written", bytes }),
        );
        return;
      case "sync":
        this.#io.sync(effect.segmentId, (error) => this.#finish("sync", error, { kind: "synced" }));
        return;
      case "truncate":
        this.#io.cut(effect.segmentId, effect.offset, (error) =>
          this.#finish("truncate", error, { kind: "truncated" }),
        );
        return;
      case "sealed":
        this.#keep(this.#io.release(effect.segmentId));
        this.#keep(this.#segments.writeIndex(effect.segmentId, effect.endOffset));
        return;
      case "written":
      case "durable":
      case "rejected":
      case "opened":
      case "flushed":
      case "stalled":
      case "resumed":
      case "failed":
      case "closed":
        this.#handlers.answer(effect);
        return;
      default:
        assertNever(effect);
    }
  }

  #create(segmentId: number, bytes: number): void {
    this.#creating = new Promise((resolve) => {
      this.#io.create(segmentId, bytes, (error) => {
        this.#finish("create", error, { kind: "created", segmentId });
        resolve();
      });
    });
  }

  #finish(during: WriterOperation, error: Error | null, input: WriterInput): void {
    this.#inFlight--;
    if (error === null) this.step(input);
    else this.step({ kind: "failed", during, code: systemCode(error), message: error.message });
  }

  /** Handles and indexes of sealed segments: their failure costs a rebuild, never an entry. */
  #keep(work: Promise<void>): void {
    const kept = work.catch(() => {}).finally(() => this.#aside.delete(kept));
    this.#aside.add(kept);
  }

  /** A timer that is armed too early only ticks for nothing. */
  #arm(): void {
    const deadline = this.#writer.nextDeadline();
    if (deadline === null || (this.#timer !== null && this.#timerAt <= deadline)) return;
    this.#timer?.cancel();
    this.#timerAt = deadline;
    this.#timer = startTimer(Math.max(0, deadline - monotonicNow()), () => {
      this.#timer = null;
      this.step({ kind: "tick" });
    });
  }
}

export function monotonicNow(): Millis {
  return millis(performance.now());
}
