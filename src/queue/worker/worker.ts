/**
 * A worker: asks the leader for work, runs it, renews leases while it runs, reports.
 *
 *     ask ──► held (leased, waiting for a slot) ──► running ──► report ──► gone
 *
 * Survives leader changes: an unresponsive leader is looked up again and gets the report later; executions continue
 * meanwhile. A rejected lease stops its execution, and nothing of it is reported. (TQ-30..35)
 */

import { performance } from "node:perf_hooks";
import { errorText } from "../../core/base/error-text.ts";
import { Fifo } from "../../core/base/fifo.ts";
import { batchesOf } from "../../core/queue/batches.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { Pace } from "../../core/queue/pace.ts";
import { encodePayload } from "../../core/queue/payload.ts";
import { backoffProblem } from "../../core/queue/retry.ts";
import type { QueueSettings } from "../../core/queue/settings.ts";
import type { Background } from "../../host/background.ts";
import type { Log } from "../../host/ports/log.ts";
import { startTimer } from "../../host/timer.ts";
import { loadFile, storeFile } from "../api/files.ts";
import type { HeldLeases, LeaderPort, NodeRegistration, Progress, Report } from "../api/types.ts";
import { dependencyResults } from "./dependencies.ts";
import { Execution } from "./execution.ts";
import { EncodedResult, type ExecutionContext, type Executors } from "./executor.ts";
import { failureOf } from "./failure.ts";
import { NoteSender } from "./note-sender.ts";
import { ReportSender } from "./report-sender.ts";

const RETRY_MS = 100;
/** A failed renewal is retried after this part of the usual interval: long before the lease expires. */
const RENEW_AGAIN_SHARE = 0.1;
/** How long a stopping node waits for the leader to accept its last messages. */
const FAREWELL_MS = 3_000;
/** Renewals per lease duration. */
const RENEWALS_PER_LEASE = 3;
/**
 * Executions that begin in one turn of the loop. Otherwise short ones would begin and end by the thousand before any
 * request or report is processed.
 */
const STARTS_PER_TURN_MAX = 100;

/** Reported at the start of a node, not with the first failure. */
function checkBackoffs(executors: Executors): void {
  for (const [name, { backoff }] of Object.entries(executors)) {
    const problem = backoff === undefined ? undefined : backoffProblem(backoff);
    if (problem !== undefined)
      throw new QueueError("INVALID_PARAMS", `executor ${name}: backoff: ${problem}`);
  }
}

interface WorkerOptions {
  readonly registration: NodeRegistration;
  readonly executors: Executors;
  readonly settings: QueueSettings;
  /** The current leader; waits while there is none. */
  readonly leader: () => Promise<LeaderPort>;
  readonly log: Log;
  readonly background: Background;
}

export class Worker {
  readonly #options: WorkerOptions;
  readonly #held = new Map<string, Execution>();
  readonly #waiting = new Fifo<Execution>();
  #running = 0;
  #startsInTurn = 0;
  readonly #pace: Pace;
  readonly #reports: ReportSender;
  readonly #notes: NoteSender;
  #refusal: string | null = null;
  #registering: Promise<void> | undefined;
  /** Calls of each kind that failed in a row. */
  readonly #failures = new Map<string, number>();
  /** The last request for work got no answer: whether anything was granted is unknown. */
  #isUnsure = false;
  /** Requests that listed its leases. */
  #questions = 0;
  #stopping = false;
  #stopped = false;
  readonly #ended = new AbortController();
  #changed: (() => void) | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    checkBackoffs(options.executors);
    const { log, background, registration } = options;
    const nodeId = registration.node_id;
    this.#pace = new Pace(registration.max_parallel);
    this.#reports = new ReportSender({
      send: async (reports) => (await options.leader()).report(nodeId, reports),
      onSent: (reports) => {
        this.#failures.delete("report");
        for (const report of reports) this.#held.delete(report.lease_token);
        this.#changed?.();
      },
      onUnanswered: (error) => this.#noteFailure("report", error),
      stopped: () => this.#stopped,
      log,
      background,
    });
    this.#notes = new NoteSender({
      started: (leases) => this.#try("started", (leader) => leader.started(nodeId, leases)),
      progress: (notes) => this.#sendNotes(notes),
      stopped: () => this.#stopped,
      background,
    });
  }

  start(): void {
    this.#options.background.run("worker", () => this.#begin());
  }

  async #begin(): Promise<void> {
    await this.#register();
    const loops = [this.#heartbeatLoop()];
    // A node without slots is only registered: it has no leases to renew or revoke.
    if (this.#options.registration.max_parallel > 0)
      loops.push(this.#askLoop(), this.#renewLoop(), this.#watchLoop());
    await Promise.all(loops);
  }

  /** Why the leader rejects this node: another live process has its id. Null when it does not. */
  get refusal(): string | null {
    return this.#refusal;
  }

  /**
   * Accepts no new work; running tasks may finish for `graceMs`, the rest is aborted and returned at once. Returns how
   * many were returned.
   */
  async stop(graceMs: number): Promise<number> {
    this.#stopping = true;
    this.#changed?.();
    const { node_id: nodeId, run } = this.#options.registration;
    await this.#farewell("drain", (leader) => leader.drain(nodeId, run));
    const unstarted = this.#waiting.takeAll();
    await this.#handBack(unstarted);
    const deadline = performance.now() + graceMs;
    while (this.#held.size > 0 && performance.now() < deadline) {
      await this.#change(Math.min(100, deadline - performance.now()));
    }
    const left = [...this.#held.values()].filter((execution) => !execution.finished);
    for (const execution of left) execution.abort("the node is stopping");
    await this.#handBack(left);
    this.#stopped = true;
    this.#ended.abort();
    this.#changed?.();
    await this.#farewell("deregister", (leader) => leader.deregister(nodeId, run));
    return unstarted.length + left.length;
  }

  async #askLoop(): Promise<void> {
    const { registration, settings } = this.#options;
    while (!this.#stopping) {
      const capacity = registration.max_parallel + this.#prefetch;
      const max = Math.min(capacity - this.#held.size, QUEUE_LIMITS.claimTasksMax);
      if (max <= 0 && !this.#isUnsure) {
        await this.#change(settings.pollIntervalMs);
        continue;
      }
      const grants = await this.#try("acquire", (leader) =>
        leader.acquire({
          nodeId: registration.node_id,
          run: registration.run,
          max: Math.max(0, max),
          waitMs: settings.pollIntervalMs,
          held: this.#namedHeld,
        }),
      );
      this.#isUnsure = grants === undefined;
      if (grants === undefined) continue;
      for (const grant of grants) {
        const execution = new Execution(grant);
        this.#held.set(grant.lease_token, execution);
        this.#waiting.push(execution);
      }
      if (this.#stopping) await this.#handBack(this.#waiting.takeAll());
      else this.#fill();
    }
  }

  /** Leases of this worker, when it may have been granted more than it knows of. */
  get #namedHeld(): HeldLeases | undefined {
    if (!this.#isUnsure || this.#held.size > QUEUE_LIMITS.heldNamedMax) return undefined;
    return { question: ++this.#questions, tokens: [...this.#held.keys()] };
  }

  get #prefetch(): number {
    const { prefetch } = this.#options.settings;
    if (prefetch !== "auto") return prefetch;
    return this.#pace.ahead(performance.now(), QUEUE_LIMITS.prefetchAutoMax);
  }

  /** Starts leased tasks while slots are free. */
  #fill(): void {
    const { registration, background } = this.#options;
    while (this.#running < registration.max_parallel && this.#waiting.size > 0) {
      if (this.#startsInTurn >= STARTS_PER_TURN_MAX) return;
      const execution = this.#waiting.take();
      if (execution === undefined || execution.lost) continue;
      if (++this.#startsInTurn === STARTS_PER_TURN_MAX) setImmediate(() => this.#nextTurn());
      this.#running++;
      background.run(`task ${execution.grant.task_id}`, () => this.#execute(execution));
    }
  }

  #nextTurn(): void {
    this.#startsInTurn = 0;
    this.#fill();
  }

  async #execute(execution: Execution): Promise<void> {
    execution.startedAt = performance.now();
    this.#notes.began(execution);
    let report: Pick<Report, "status" | "result" | "error">;
    try {
      report = await this.#perform(execution);
    } catch (error) {
      report = { status: "failed", result: null, error: failureOf(error) };
    }
    execution.finished = true;
    const endedAt = performance.now();
    this.#pace.finished(endedAt, endedAt - execution.startedAt);
    this.#running--;
    this.#fill();
    // Messages are accepted only under a valid lease, and a result ends it.
    const delivered = execution.lost ? undefined : this.#notes.delivered(execution);
    if (delivered !== undefined) await delivered;
    if (execution.lost) {
      this.#held.delete(execution.grant.lease_token);
      return;
    }
    this.#reports.add({
      task_id: execution.grant.task_id,
      lease_token: execution.grant.lease_token,
      attempt_id: execution.grant.attempt_id,
      ...report,
      ...this.#backoffOf(execution, report),
      elapsed_ms: endedAt - execution.startedAt,
      start_noted: execution.startNoted,
    });
  }

  /** Backoff of its executor, for the leader that decides. */
  #backoffOf({ grant }: Execution, { status }: Pick<Report, "status">): Pick<Report, "backoff"> {
    const backoff = this.#options.executors[grant.executor]?.backoff;
    return status === "failed" && backoff !== undefined ? { backoff } : {};
  }

  /**
   * Sends messages to the leader; returns false when they are to be sent again. Those that it rejects are dropped with
   * a warning.
   */
  async #sendNotes(notes: readonly Progress[]): Promise<boolean> {
    const { registration, log } = this.#options;
    const taken = await this.#try("progress", async (leader) => {
      try {
        await leader.progress(registration.node_id, notes);
      } catch (error) {
        const known = error instanceof QueueError ? error : undefined;
        if (known !== undefined && !known.final && known.code !== "INTERNAL") throw error;
        log.event("error", "words.dropped", { count: notes.length, reason: errorText(error) });
      }
      return true;
    });
    return taken === true;
  }

  async #perform(execution: Execution): Promise<Pick<Report, "status" | "result" | "error">> {
    const { grant } = execution;
    const executor = this.#options.executors[grant.executor];
    if (executor === undefined) throw new Error(`this node has no executor "${grant.executor}"`);
    const input: unknown = JSON.parse(grant.input);
    const limit = execution.limit(grant.timeout_ms);
    let result: unknown;
    try {
      result = await execution.run(() => executor(input, this.#context(execution)));
    } finally {
      limit?.cancel();
    }
    if (result instanceof EncodedResult)
      return { status: "completed", result: result.text, error: null };
    const payload = encodePayload(result, "the result");
    if (payload.ok) return { status: "completed", result: payload.text, error: null };
    return {
      status: "failed",
      result: null,
      error: { message: payload.problem, retryable: false },
    };
  }

  #context(execution: Execution): ExecutionContext {
    const { grant } = execution;
    const say = (kind: Progress["kind"], message: unknown): void =>
      this.#notes.say(execution, kind, message);
    return {
      taskId: grant.task_id,
      attempt: grant.attempt_id,
      idempotencyKey: grant.idempotency_key,
      dependencies: dependencyResults(
        grant.dependencies === undefined ? undefined : JSON.parse(grant.dependencies),
        grant.dependencies_missing ?? {},
      ),
      dependenciesMissing: grant.dependencies_missing ?? {},
      get signal() {
        return execution.signal;
      },
      log: (message) => say("log", String(message).slice(0, QUEUE_LIMITS.logLineCharactersMax)),
      progress: (value) => say("progress", value),
      history: () => this.#insist(execution, (leader) => leader.history(execution.lease)),
      file: (hash) => this.#insist(execution, (leader) => loadFile(leader.files, hash)),
      attach: (name, content, mediaType = "application/octet-stream") =>
        this.#insist(execution, async ({ files }) => {
          const hash = await storeFile(files, Buffer.from(content));
          await files.attach(execution.lease, { name, hash, media_type: mediaType });
        }),
    };
  }

  /** A call of an execution: retried across leader changes, while the lease is valid. */
  async #insist<Answer>(
    execution: Execution,
    call: (leader: LeaderPort) => Promise<Answer>,
  ): Promise<Answer> {
    for (;;) {
      try {
        return await call(await this.#options.leader());
      } catch (error) {
        const passing = error instanceof QueueError && error.retryable;
        if (!passing || execution.over || this.#stopped) throw error;
        await this.#pause(RETRY_MS);
      }
    }
  }

  async #renewLoop(): Promise<void> {
    const { registration, settings } = this.#options;
    const everyMs = settings.taskLeaseMs / RENEWALS_PER_LEASE;
    let waitMs = everyMs;
    while (!this.#stopped) {
      await this.#pause(waitMs);
      waitMs = everyMs;
      const due = [...this.#held.values()].filter(
        (execution) => !execution.lost && performance.now() - execution.grantedAt >= everyMs / 2,
      );
      for (const batch of batchesOf(due, QUEUE_LIMITS.claimTasksMax)) {
        if (this.#stopped) return;
        const lost = await this.#try("renew", (leader) =>
          leader.renew(
            registration.node_id,
            batch.map(({ lease }) => lease),
          ),
        );
        if (lost === undefined) waitMs = everyMs * RENEW_AGAIN_SHARE;
        for (const token of lost ?? []) this.#lose(token);
      }
    }
  }

  async #watchLoop(): Promise<void> {
    const { registration } = this.#options;
    while (!this.#stopped) {
      const revoked = await this.#try("watch", (leader) =>
        leader.watch(registration.node_id, registration.run, QUEUE_LIMITS.claimWaitMsMax),
      );
      for (const token of revoked ?? []) this.#lose(token);
    }
  }

  async #heartbeatLoop(): Promise<void> {
    const { registration, settings } = this.#options;
    while (!this.#stopped) {
      await this.#pause(settings.heartbeatMs);
      if (this.#stopped) return;
      const known = await this.#try("heartbeat", (leader) =>
        leader.heartbeat(registration.node_id, registration.run),
      );
      if (known === false && !this.#stopping) await this.#register();
    }
  }

  #lose(token: string): void {
    const execution = this.#held.get(token);
    if (execution === undefined || execution.finished || execution.lost) return;
    execution.lost = true;
    execution.abort("the lease was lost: the task was cancelled or given to another node");
    this.#options.log.event("warn", "lease.lost", { task_id: execution.grant.task_id, token });
    if (execution.startedAt === 0) this.#held.delete(token);
    this.#changed?.();
  }

  async #handBack(executions: readonly Execution[]): Promise<void> {
    const nodeId = this.#options.registration.node_id;
    for (const execution of executions) {
      execution.lost = true;
      this.#held.delete(execution.grant.lease_token);
    }
    for (const batch of batchesOf(executions, QUEUE_LIMITS.claimTasksMax)) {
      const leases = batch.map(({ lease }) => lease);
      await this.#farewell("release", (leader) => leader.release(nodeId, leases));
    }
  }

  /** A last message that must not keep a node from stopping when there is no leader. */
  async #farewell(what: string, call: (leader: LeaderPort) => Promise<void>): Promise<void> {
    await Promise.race([this.#try(what, call), this.#options.background.pause(FAREWELL_MS)]);
  }

  /** Registers this node at a leader that does not know it, once for concurrent callers. */
  #register(): Promise<void> {
    this.#registering ??= this.#registerUntilTaken().finally(() => {
      this.#registering = undefined;
    });
    return this.#registering;
  }

  async #registerUntilTaken(): Promise<void> {
    const { registration, settings, leader } = this.#options;
    while (!this.#stopping) {
      try {
        await (await leader()).register(registration);
        this.#failures.delete("register");
        this.#refusal = null;
        return;
      } catch (error) {
        this.#noteFailure("register", error);
        // A second process with this id: it gets no work until the first is dead.
        const refused = error instanceof QueueError && error.code === "CONFLICT";
        this.#refusal = refused ? error.message : null;
        await this.#pause(refused ? settings.heartbeatMs : RETRY_MS);
      }
    }
  }

  /** One call to the leader. Returns undefined when it failed; the caller decides whether to repeat. */
  async #try<Answer>(
    what: string,
    call: (leader: LeaderPort) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    try {
      const answer = await call(await this.#options.leader());
      this.#failures.delete(what);
      return answer;
    } catch (error) {
      if (error instanceof QueueError && error.code === "NODE_UNKNOWN" && !this.#stopping) {
        await this.#register();
        return undefined;
      }
      this.#noteFailure(what, error);
      await this.#pause(RETRY_MS);
      return undefined;
    }
  }

  /** Logs consecutive failures as they double: the first at once, a lasting one without a flood. */
  #noteFailure(call: string, error: unknown): void {
    const count = (this.#failures.get(call) ?? 0) + 1;
    this.#failures.set(call, count);
    const doubled = (count & (count - 1)) === 0;
    const fields = { call, count, reason: errorText(error) };
    this.#options.log.event(doubled ? "warn" : "debug", "leader.call_failed", fields);
  }

  #pause(ms: number): Promise<void> {
    return this.#options.background.pause(ms, this.#ended.signal);
  }

  /** Waits until something was finished, lost or stopped, at most this long. */
  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = startTimer(ms, done);
      const previous = this.#changed;
      const self = this;
      function done(): void {
        timer.cancel();
        self.#changed = undefined;
        previous?.();
        resolve();
      }
      this.#changed = done;
    });
  }
}
