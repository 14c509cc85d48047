/**
 * Results on their way to the leader. Unanswered ones are sent again, to the next leader if need be; a rejected batch
 * is halved until the one unacceptable report is alone, and that one ends its task with the reason. Nothing is blocked
 * behind it. (TQ-30, TQ-38)
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
/** Attempts for a report that the leader fails on without a reason. */
const UNEXPLAINED_TRIES_MAX = 5;
const BOUNDS = {
  countMax: QUEUE_LIMITS.claimTasksMax,
  bytesMax: QUEUE_LIMITS.messageBytesMax,
};

interface ReportSenderOptions {
  /** Returns the rejected tokens; throws errors of the leader or the connection. */
  readonly send: (reports: readonly Report[]) => Promise<readonly string[]>;
  /** These leases can be released. */
  readonly onSent: (reports: readonly Report[]) => void;
  /** The leader could not be reached; for logging. */
  readonly onUnanswered: (error: unknown) => void;
  readonly stopped: () => boolean;
  readonly log: Log;
  readonly background: Background;
}

export class ReportSender {
  readonly #options: ReportSenderOptions;
  #pending: Report[] = [];
  #sending = false;
  /** Maximum batch size: smaller while a rejected report is searched for. */
  #together: number = BOUNDS.countMax;
  #tries = 0;
  /** The report whose rejected result was replaced by the reason. */
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

  /** Fails the task with the leader's reason; if even that is rejected, its lease expires. */
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
