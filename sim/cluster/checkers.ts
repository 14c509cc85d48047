/**
 * Invariants of workers, beside the answers to clients (`results.ts`) and the counts of cores (`truth.ts`).
 *
 *   T4   load that nobody can stop ends by itself; when all is over no core is in use
 *   T9   a worker that has promised a view accepts no orders of a lower one, over all its incarnations, and none
 *        meant for another incarnation; it answers nothing of a view before that promise is on its disk. No two
 *        processes have the same incarnation; one with an emptied directory has promised nothing
 *   T12  the memory of processes is bounded by what exists
 *   P1   requests that end work, or show that it has ended, are never shed
 *   P2   a request rejected for capacity or by its rate gets a retry time, and has had no effect
 */

import { SILENCE_MS_MAX } from "../../src/core/cluster/link/limits.ts";
import type {
  Announce,
  Announced,
  ClientAnswer,
  ClientRequest,
  Control,
  Orders,
  Progress,
  Refusal,
  Taken,
} from "../../src/core/cluster/messages.ts";
import { BACKPRESSURE_LEVELS } from "../../src/core/cluster/overload/backpressure.ts";
import { OPERATIONS, operationOf } from "../../src/core/cluster/overload/operations.ts";
import type { PressureView } from "../../src/core/cluster/overload/request-guard.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { JobPlan } from "./jobs.ts";
import type { Results } from "./results.ts";
import type { SimWorker } from "./worker.ts";

/** Covers work in flight at the end, and the kill after it. */
const GRACE_MS = 5_000;
/** Time for a paused worker to notice the pause. */
const AWAKE_MS = 10_000;

export class TiersCheckers {
  readonly results: Results;
  readonly marks = new Set<string>();
  readonly #world: World;
  readonly #violations: Violations;
  /** When each worker was last paused. */
  readonly #pausedAt = new Map<SimWorker, number>();
  /** The highest view of each job that each worker has obeyed. */
  readonly #obeyed = new Map<string, number>();
  /** The process of each worker that first answered under each incarnation. */
  readonly #lives = new Map<string, number>();

  /** Keys of jobs that were rejected and not retried. */
  readonly #refused = new Set<string>();

  constructor(world: World, violations: Violations, results: Results) {
    this.#world = world;
    this.#violations = violations;
    this.results = results;
  }

  onWorker(worker: SimWorker): void {
    const { machine, spec } = worker;
    if (machine === null) return;
    // The machine would have rejected more than this at once.
    this.#violations.check(worker.cores.size <= spec.cores * 8, "T12", () => {
      return `${worker.name} runs ${worker.cores.size} processes on ${spec.cores} cores`;
    });
  }

  onAnswered(
    worker: SimWorker,
    request: Announce | Orders,
    answer: Announced | Taken | Refusal,
  ): void {
    const { incarnation, name, life } = worker;
    const { job, kind, view } = request;
    if (answer.kind === "refused") {
      this.marks.add(`worker.${answer.reason}`);
      return;
    }
    const meant = request.kind === "orders" ? request.incarnation : incarnation;
    this.#violations.check(meant === incarnation, "T9", () => {
      return `incarnation ${incarnation} of ${name} takes orders for ${meant} of ${job}`;
    });
    this.#violations.check(worker.promised(job) >= view, "T9", () => {
      return `${name} takes ${kind} of view ${view} of ${job}, and has not kept its promise on disk`;
    });
    const incarnated = `${name} ${incarnation}`;
    const first = this.#lives.get(incarnated) ?? life;
    this.#lives.set(incarnated, first);
    this.#violations.check(first === life, "T9", () => {
      return `lives ${first} and ${life} of ${name} have the incarnation ${incarnation}`;
    });
    const key = `${name} ${worker.directory} ${job}`;
    const highest = this.#obeyed.get(key) ?? -1;
    this.#violations.check(view >= highest, "T9", () => {
      return `${name} (life ${life}) takes ${kind} of view ${view} of ${job} after ${highest}`;
    });
    this.#obeyed.set(key, Math.max(view, highest));
  }

  /** Runs once a second. */
  sample(worker: SimWorker): void {
    const { now } = this.#world;
    if (worker.lifetime.state === "paused") this.#pausedAt.set(worker, now);
    if (worker.lifetime.state !== "up" || worker.cores.size === 0) return;
    for (const core of worker.cores.values())
      if (core.isLoading) this.results.onLoading(core.key, worker.name);
    if (now - (this.#pausedAt.get(worker) ?? Number.NEGATIVE_INFINITY) < AWAKE_MS) return;
    // A dead connection is detected after a silence of this length.
    const limitMs = Math.max(SILENCE_MS_MAX, worker.spec.isolationMs) + GRACE_MS;
    this.#violations.check(now - worker.heardAt < limitMs, "T4", () => {
      return `${worker.name} holds cores ${limitMs} ms after the last word of a manager`;
    });
  }

  /** Records a node's own overload state, for the list of what was seen. */
  onMeasured(pressure: PressureView | null): void {
    if (pressure === null) return;
    if (pressure.state !== "healthy") this.marks.add(`node.${pressure.state}`);
    if (pressure.backpressure > 0)
      this.marks.add(`backpressure.${BACKPRESSURE_LEVELS[pressure.backpressure]}`);
  }

  /** Checks every answer to a client. */
  onClientAnswer(request: ClientRequest, answer: ClientAnswer | null): void {
    if (answer?.kind !== "refused") return;
    const { message, reason, retryAfterMs } = answer;
    if (reason !== "overloaded" && reason !== "rateLimited") return;
    const operation = operationOf({ name: "clientRequest", correlation: 0, value: request });
    this.marks.add(`refused.${reason}.${operation}`);
    const isCritical = operation !== null && OPERATIONS[operation].priority === "critical";
    this.#violations.check(!isCritical || reason !== "overloaded", "P1", () => {
      return `a request to ${operation} was shed: ${message}`;
    });
    this.#violations.check((retryAfterMs ?? 0) > 0, "P2", () => {
      return `a request to ${operation} was refused without a word of when to come back: ${message}`;
    });
  }

  /** Checks a submission that is not retried. */
  onFlooded(plan: JobPlan, answer: ClientAnswer | null): void {
    if (answer?.kind === "accepted") {
      this.marks.add("flood.accepted");
      this.results.onSubmitted(plan.key, answer);
    } else if (answer?.kind === "refused") {
      this.marks.add(`flood.${answer.reason}`);
      if (answer.reason === "overloaded" || answer.reason === "rateLimited")
        this.#refused.add(plan.key);
    }
  }

  /** Runs when everything is over. */
  judgeRefusals(): void {
    for (const key of this.#refused)
      this.#violations.check(!this.results.hasBegun(key), "P2", () => {
        return `${key} was refused, and cores were opened for it`;
      });
  }

  onSubmitted(key: string, answer: ClientAnswer): void {
    this.results.onSubmitted(key, answer);
  }

  onLost(job: string, answer: ClientAnswer): void {
    this.results.onLost(job, answer);
  }

  onSteering(job: string, control: Control): void {
    this.results.onSteering(job, control);
  }

  onSteered(job: string, control: Control, answer: ClientAnswer): void {
    this.marks.add(`control.${control.kind}.${answer.kind}`);
    this.results.onSteered(job, control, answer);
  }

  onEnded(job: string, plan: JobPlan, progress: Progress): void {
    this.marks.add(`job.${progress.status}`);
    const lost = progress.summary?.lost ?? [];
    if (lost.length > 0) this.marks.add("job.coreLost");
    if (lost.some(({ dealtAgainTo }) => dealtAgainTo != null)) this.marks.add("job.dealtAgain");
    this.results.onEnded(job, plan, progress);
  }
}
