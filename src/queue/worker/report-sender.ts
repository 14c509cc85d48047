/**
 * Results on their way to the leader. Those that a leader did not answer are sent again, to the next one
 * if need be; a batch that was refused is halved until the one report that cannot be taken is alone, and
 * that one ends its task with the reason. Nothing waits behind it for ever. (TQ-30, TQ-38)
 */

import { errorText } from "../../core/base/error-text.ts";
import { batchLength, textBytesBound } from "../../core/queue/batches.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { Background } from "../../host/background.ts";
import type { Log } from "../../host/ports/log.ts";
import type { Report } from "../api/types.ts";

const RETRY_MS = 100;
/** Fields of a report beside its texts. */
const REPORT_BYTES = 512;
/** A report that the leader fails on without saying why is tried so often before it is given up. */
const UNEXPLAINED_TRIES_MAX = 5;
const BOUNDS = {
  countMax: QUEUE_LIMITS.claimTasksMax,
  bytesMax: QUEUE_LIMITS.messageBytesMax,
};

interface ReportSenderOptions {
  /** Returns the tokens that were refused; throws what the leader or the way to it said. */
  readonly send: (reports: readonly Report[]) => Promise<readonly string[]>;
  /** These need not be held any more. */
  readonly onSent: (reports: readonly Report[]) => void;
  /** The way to the leader failed: told to whoever logs it. */
  readonly onUnanswered: (error: unknown) => void;
  readonly stopped: () => boolean;
  readonly log: Log;
  readonly background: Background;
}

export class ReportSender {
  readonly #options: ReportSenderOptions;
  #pending: Report[] = [];
  #sending = false;
  /** How many go together at most: fewer while a refused one is searched for. */
  #together: number = BOUNDS.countMax;
  #tries = 0;
  /** The report whose result was refused and that says so instead. */
  #replaced: string | undefined;

  constructor(options: ReportSenderOptions) {
    this.#options = options;
  }

  add(report: Report): void {
    this.#pending.push(report);
    if (this.#sending) return;
    this.#sending = true;
    const { background } = this.#options;
    setImmediate(() => background.run("report results", () => this.#send()));
  }

  async #send(): Promise<void> {
    while (this.#pending.length > 0 && !this.#options.stopped()) {
      const count = Math.min(batchLength(this.#pending, BOUNDS, reportBytes), this.#together);
      const batch = this.#pending.slice(0, count);
      try {
        const refused = await this.#options.send(batch);
        for (const token of refused) this.#options.log.event("warn", "report.refused", { token });
        this.#together = BOUNDS.countMax;
        this.#take(count);
      } catch (error) {
        await this.#failed(batch, error);
      }
    }
    this.#sending = false;
  }

  #take(count: number): void {
    this.#tries = 0;
    this.#replaced = undefined;
    this.#options.onSent(this.#pending.splice(0, count));
  }

  async #failed(batch: readonly Report[], error: unknown): Promise<void> {
    const known = error instanceof QueueError ? error : undefined;
    const final = known?.final === true;
    const unexplained = known === undefined || known.code === "INTERNAL";
    if (!final && !unexplained) {
      this.#options.onUnanswered(error);
      await this.#options.background.pause(RETRY_MS);
      return;
    }
    if (batch.length > 1) {
      this.#together = batch.length >> 1;
      return;
    }
    if (!final && ++this.#tries < UNEXPLAINED_TRIES_MAX) {
      this.#options.onUnanswered(error);
      await this.#options.background.pause(RETRY_MS);
      return;
    }
    this.#giveUp(batch[0], errorText(error));
  }

  /** The task fails with what the leader said; when even that is refused, its lease runs out. */
  #giveUp(report: Report | undefined, reason: string): void {
    if (report === undefined) return;
    const { log } = this.#options;
    const task = { task_id: report.task_id, attempt: report.attempt_id, reason };
    this.#tries = 0;
    if (this.#replaced === report.lease_token) {
      log.event("error", "report.dropped", task);
      this.#take(1);
      return;
    }
    log.event("error", "report.impossible", task);
    this.#replaced = report.lease_token;
    const error = {
      message: `the leader cannot take the result: ${reason.slice(0, 1_000)}`,
      retryable: false,
    };
    this.#pending[0] = { ...report, status: "failed", result: null, error };
  }
}

function reportBytes({ result, error }: Report): number {
  const words = error === null ? 0 : textBytesBound(JSON.stringify(error));
  return REPORT_BYTES + textBytesBound(result) + words;
}
