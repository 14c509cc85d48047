/**
 * A worker process as one state machine: its links to all managers, the files of jobs, and the worker itself.
 *
 *   bytes ─▶ links ─▶ orders of managers ─┐            ┌─▶ events, heartbeats ─▶ links ─▶ bytes
 *   executor processes ─▶ events ─────────┼─▶ Worker ──┼─▶ open, command, end ─▶ executor processes
 *   disk ─▶ views kept, files found ──────┘            └─▶ views, files ─▶ disk
 */

import type { Compressor } from "../../../host/ports/compressor.ts";
import { agreeOn, type Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import { encodeStreamMessage, type StreamEnvelope } from "../../../wire/registry.ts";
import type { Entropy } from "../../../wire/seal.ts";
import { assert, assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { Address } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { clipText } from "../../base/text.ts";
import { type FetchEffect, Fetches } from "../artifacts/fetches.ts";
import type { KeptLinkView } from "../link/kept-link.ts";
import { QUEUE_LIMITS, REJOIN_MS_MAX } from "../link/limits.ts";
import { Links } from "../link/links.ts";
import { LINK_RULES } from "../link/rules.ts";
import type { LinkEffect, LinkInput } from "../link/types.ts";
import { MANAGER_DEFAULTS } from "../manager/types.ts";
import {
  type Announce,
  type Announced,
  type Artifact,
  DISK_PROBLEM_CHARACTERS_MAX,
  type Orders,
  type Refusal,
  type Taken,
} from "../messages.ts";
import { Degradation, degradationLog, LagTimer } from "../overload/degradation.ts";
import type { JobCodeRights } from "../views.ts";
import { LoadProgress } from "../worker/load-progress.ts";
import type { WorkerRules } from "../worker/rules.ts";
import type { WorkerConfig, WorkerEffect, WorkerInput } from "../worker/types.ts";
import type { FencedViews } from "../worker/view-fence.ts";
import { Worker } from "../worker/worker.ts";

/** Timeout of a request to a manager; it is then retried. */
const ANSWER_MS_MAX = 5_000;

interface ManagerAddress {
  readonly name: string;
  readonly address: Address;
}

interface WorkerProcessOptions {
  readonly worker: WorkerConfig;
  /** Views promised by earlier processes. */
  readonly views: FencedViews;
  readonly hello: Hello;
  readonly managers: readonly ManagerAddress[];
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  /** Defaults to all rules. */
  readonly rules?: WorkerRules;
}

/** Observer of answers to managers, for checkers; unused in production. */
interface WorkerWatcher {
  readonly onAnswered: (
    request: Announce | Orders,
    answer: Announced | Taken | Refusal,
    manager: string,
  ) => void;
}

export type WorkerProcessInput =
  | LinkInput
  /** Dials the managers. */
  | { readonly kind: "start" }
  | Extract<WorkerInput, { kind: "core" | "coreGone" | "viewsKept" | "drain" | "leave" | "tick" }>
  /** Answer to `lookUp`: files that are missing here. */
  | { readonly kind: "lookedUp"; readonly job: string; readonly missing: readonly Artifact[] }
  /** Answer to `keep`. */
  | {
      readonly kind: "kept";
      readonly job: string;
      readonly hash: string;
      readonly problem: string | null;
      /** The content does not match its hash. */
      readonly isDamaged: boolean;
    };

export type WorkerProcessEffect =
  | LinkEffect
  | Exclude<WorkerEffect, { kind: "heartbeat" | "answer" | "events" }>
  | Extract<FetchEffect, { kind: "lookUp" | "keep" }>;

type OpenEffect = Extract<WorkerEffect, { kind: "open" }>;

/** Open request to a manager. */
type PendingRequest =
  | {
      readonly kind: "events";
      readonly manager: string;
      readonly job: string;
      readonly view: number;
    }
  | {
      readonly kind: "get";
      readonly manager: string;
      readonly job: string;
      readonly request: number;
    }
  | { readonly kind: "extension"; readonly manager: string; readonly number: number };

assert(MANAGER_DEFAULTS.rejoinMs >= REJOIN_MS_MAX, "managers wait until a worker has called again");

export class WorkerProcess {
  readonly worker: Worker;
  readonly #links: Links;
  readonly #managers: readonly ManagerAddress[];
  /** Last reported state of each link; every failed dial reports a link down again. */
  readonly #up = new Map<string, boolean>();
  readonly #progress = new LoadProgress();
  readonly #levels = new Degradation();
  readonly #timer = new LagTimer();
  /** Managers that support extension requests. */
  readonly #granting = new Set<string>();
  /** Managers that accept merged metrics. */
  readonly #merging = new Set<string>();
  readonly #fetches: Fetches;
  /** Cores waiting for the files of their job. */
  readonly #opening = new Map<string, OpenEffect[]>();
  readonly #pending = new Map<number, PendingRequest>();
  readonly #deadlines = new Deadlines<number>();
  /** Destination of the answer to each request of a manager. */
  readonly #requests = new Map<
    number,
    {
      readonly manager: string;
      readonly correlation: number;
      readonly request: Announce | Orders;
    }
  >();
  watcher: WorkerWatcher | null = null;
  readonly #heartbeat: Extract<StreamEnvelope, { name: "heartbeat" }>["value"];
  readonly #rights: ReturnType<typeof rightsOf>;
  /** Whether the last file could be stored. */
  #disk = { diskProblem: "" };
  #ids = 0;
  #effects: WorkerProcessEffect[] = [];
  #now = 0 as Millis;
  /** When the last bytes from any manager arrived; a worker has no other peers. */
  #lastSeenAt = 0 as Millis;

  constructor(options: WorkerProcessOptions, random: Random) {
    const { worker, views, hello, ring, entropy, compressor, managers, rules } = options;
    this.worker = new Worker(worker, views, rules);
    this.#managers = managers;
    this.#fetches = new Fetches(managers.map((one) => one.name));
    const { boot = "", executorUser, name, incarnation, cores, version } = worker;
    this.#rights = rightsOf(executorUser);
    const own = { ...this.#rights, draining: false, boot };
    this.#heartbeat = { worker: name, incarnation, cores, version, ...own };
    this.#links = new Links(
      {
        ...{ hello, ring, entropy, compressor },
        ...{ limits: QUEUE_LIMITS, rules: LINK_RULES },
        emit: (effect) => this.#effects.push(effect),
      },
      {
        refusePeer: (peer, greeted) => {
          const { datacenter, node, role } = greeted;
          if (datacenter !== "" && datacenter !== hello.datacenter)
            return `${node} is a ${role} of ${datacenter}, and this is a worker of ${hello.datacenter}`;
          if (agreeOn("extensions", hello, greeted)) this.#granting.add(peer);
          else this.#granting.delete(peer);
          if (agreeOn("merged_frames", hello, greeted)) this.#merging.add(peer);
          else this.#merging.delete(peer);
          return node === peer && role === "manager"
            ? null
            : `${role} "${node}" answers for ${peer}`;
        },
        opening: () => ({
          name: "heartbeat",
          correlation: 1,
          value: { ...this.#heartbeat, ...this.#disk, draining: this.worker.draining },
        }),
        refuseOpened: (_peer, answer) => {
          if (answer.name === "denial") return answer.value.message;
          return answer.name === "opened" ? null : `a manager does not answer with ${answer.name}`;
        },
        onSent: () => undefined,
        onUp: (manager) => this.#onLink(manager, true, null),
        onDown: (manager, problem) => this.#onLink(manager, false, problem),
        onPush: (manager, message) => this.#onMessage(manager, message),
        onDropped: () => undefined,
        onRequest: (incoming) =>
          this.#links.refuse(incoming, "ROLE", "a worker is not called", this.#now),
        onMessage: ({ stream }) => this.#links.destroy(stream, "a worker is not called", this.#now),
        onGone: () => undefined,
      },
      random,
    );
    for (const { name: manager, address } of managers) this.#links.keep(manager, address);
  }

  get encryption(): string {
    return this.#links.ring.encryption;
  }

  /** Requests, cores waiting for files, and unacknowledged events. (BP-4) */
  get queued(): number {
    let { queued } = this.worker;
    for (const opening of this.#opening.values())
      for (const { opened } of opening) queued += opened.length;
    return queued;
  }

  get degradation(): ReturnType<Degradation["view"]> {
    return this.#levels.view();
  }

  managers(): readonly (ManagerAddress & KeptLinkView)[] {
    return this.#managers.map((one) => ({ ...one, ...this.#links.view(one.name) }));
  }

  step(input: WorkerProcessInput, now: Millis): readonly WorkerProcessEffect[] {
    this.#now = now;
    switch (input.kind) {
      case "start":
        this.#timer.start(now);
        this.#links.call(now);
        break;
      case "core":
      case "coreGone":
      case "viewsKept":
      case "drain":
      case "leave":
        this.#step(input);
        break;
      case "tick":
        this.#onTick();
        break;
      case "lookedUp":
        this.#fetch(this.#fetches.lookedUp(input.job, input.missing));
        break;
      case "kept":
        if (!input.isDamaged)
          this.#disk = { diskProblem: clipText(input.problem ?? "", DISK_PROBLEM_CHARACTERS_MAX) };
        this.#fetch(this.#fetches.kept(input, now));
        break;
      default:
        if (input.kind === "bytes") this.#lastSeenAt = now;
        this.#links.take(input, now);
    }
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): Millis | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(
      this.#links.nextDeadline() ?? never,
      this.worker.nextDeadline() ?? never,
      this.#fetches.nextDeadline() ?? never,
      this.#deadlines.next() ?? never,
      this.#timer.dueAt,
      this.#askAt(),
    );
    return at === never ? null : (at as Millis);
  }

  #onTick(): void {
    this.#progress.onLate(this.#now - (this.nextDeadline() ?? this.#now), this.#now);
    this.#measure();
    if (this.#askAt() <= this.#now) this.#askForTime();
    this.#links.tick(this.#now);
    for (const id of this.#deadlines.takeDue(this.#now)) this.#onAnswer(id, null);
    this.#fetch(this.#fetches.tick(this.#now));
    this.#step({ kind: "tick" });
  }

  /** Infinite while no connected manager could grant an extension. */
  #askAt(): number {
    const canAsk = [...this.#granting].some((manager) => this.#up.get(manager) === true);
    return canAsk ? this.#progress.askAt : Number.POSITIVE_INFINITY;
  }

  /** Asks every manager: leaders of its jobs wait for it, and others assign it no new work. (AD-26.1) */
  #askForTime(): void {
    const { incarnation, worker } = this.#heartbeat;
    const request = this.#progress.ask(this.#now);
    const { number, progress, reason } = request;
    const fields = { number, progress, reason };
    this.#effects.push({ kind: "log", level: "warn", event: "worker.askedForTime", fields });
    for (const manager of this.#granting) {
      if (this.#up.get(manager) !== true) continue;
      const value = { worker, incarnation, ...request };
      this.#ask(
        { kind: "extension", manager, number },
        { name: "extension", correlation: 0, value },
      );
    }
  }

  #onLink(manager: string, up: boolean, problem: string | null): void {
    if (this.#up.get(manager) === up) return;
    this.#up.set(manager, up);
    if (!up) {
      for (const [id, pending] of [...this.#pending])
        if (pending.manager === manager) this.#onAnswer(id, null);
    }
    const fields = problem === null ? { manager } : { manager, problem };
    const event = up ? "manager.up" : "manager.down";
    this.#effects.push({ kind: "log", level: up ? "info" : "warn", event, fields });
    const [heardAt, merges] = [this.#lastSeenAt, this.#merging.has(manager)];
    const input = { kind: "link", manager } as const;
    this.#step(up ? { ...input, up, merges } : { ...input, up, heardAt });
  }

  #onMessage(manager: string, { name, correlation, value }: StreamEnvelope): void {
    switch (name) {
      case "announce":
      case "orders": {
        const id = ++this.#ids;
        const request =
          name === "announce"
            ? ({ kind: name, ...value } as const)
            : ({ kind: name, ...value } as const);
        this.#requests.set(id, { manager, correlation, request });
        this.#step({ kind: "request", manager, id, request });
        return;
      }
      case "drain":
        this.#step({ kind: "drain" });
        this.#send(manager, { name: "taken", correlation, value: { next: 0 } });
        return;
      case "taken":
      case "denial":
      case "blobChunk":
      case "extended":
        this.#onAnswer(correlation, { name, correlation, value } as StreamEnvelope);
        return;
      default:
    }
  }

  /** `answer`: null if none came. */
  #onAnswer(id: number, answer: StreamEnvelope | null): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    this.#deadlines.delete(id);
    if (pending.kind === "extension") {
      if (answer?.name === "extended")
        this.#progress.answered(pending.number, answer.value, this.#now);
      return;
    }
    const { job } = pending;
    if (pending.kind === "get") {
      const bytes = answer?.name === "blobChunk" ? answer.value.bytes : null;
      this.#fetch(this.#fetches.part(job, pending.request, bytes, this.#now));
      return;
    }
    const answered = { kind: "answered", job, view: pending.view } as const;
    if (answer?.name === "taken")
      this.#step({ ...answered, answer: { kind: "taken", ...answer.value } });
    else if (answer?.name === "denial")
      this.#step({ ...answered, answer: { kind: "refused", ...answer.value } });
    else this.#step({ ...answered, answer: null });
  }

  #ask(pending: PendingRequest, message: StreamEnvelope): void {
    const id = ++this.#ids;
    this.#pending.set(id, pending);
    this.#deadlines.set(id, this.#now + ANSWER_MS_MAX);
    this.#send(pending.manager, { ...message, correlation: id });
  }

  #send(manager: string, message: StreamEnvelope): void {
    this.#links.send(manager, encodeStreamMessage(message), this.#now);
  }

  #step(input: WorkerInput): void {
    if (input.kind === "core") this.#progress.onEvent(input.slot, input.event, this.#now);
    if (input.kind === "coreGone") this.#progress.onGone(input.slot);
    for (const effect of this.worker.step(input, this.#now)) this.#perform(effect);
  }

  #perform(effect: WorkerEffect): void {
    switch (effect.kind) {
      case "heartbeat": {
        const { kind: _, ...heartbeat } = effect.heartbeat;
        const accepting = this.#levels.actions.takesWork;
        const own = { ...this.#rights, ...this.#disk, queued: this.queued, accepting };
        const value = { ...heartbeat, ...this.#progress.report, ...own };
        this.#send(effect.to, { name: "heartbeat", correlation: 0, value });
        return;
      }
      case "answer":
        this.#answer(effect);
        return;
      case "events": {
        const { kind: _, ...value } = effect.events;
        const { job, view } = value;
        const pending = { kind: "events", manager: effect.to, job, view } as const;
        this.#ask(pending, { name: "events", correlation: 0, value });
        return;
      }
      case "open":
        this.#open(effect);
        return;
      case "closed":
        this.#opening.delete(effect.job);
        this.#fetches.forget(effect.job);
        break;
      case "command":
        this.#progress.onCommand(effect.slot, effect.command, this.#now);
        break;
      case "endCore":
        this.#progress.onGone(effect.slot);
        break;
      case "keepViews":
      case "log":
      case "drained":
        break;
      default:
        assertNever(effect);
    }
    this.#effects.push(effect);
  }

  /** Measures the lag of this worker itself. */
  #measure(): void {
    const lagMs = this.#timer.take(this.#now);
    const change = lagMs === null ? null : this.#levels.sample({ health: 0, lagMs });
    if (change !== null) this.#effects.push(degradationLog(change, lagMs ?? 0));
  }

  #answer({ answer, id }: Extract<WorkerEffect, { kind: "answer" }>): void {
    const pending = this.#requests.get(id);
    this.#requests.delete(id);
    if (pending === undefined) return;
    const { correlation, manager, request } = pending;
    this.watcher?.onAnswered(request, answer, manager);
    switch (answer.kind) {
      case "announced": {
        const { cores, events } = answer;
        this.#send(manager, { name: "announced", correlation, value: { cores, events } });
        return;
      }
      case "taken":
        this.#send(manager, { name: "taken", correlation, value: { next: answer.next } });
        return;
      case "refused": {
        const { message, reason } = answer;
        this.#send(manager, { name: "denial", correlation, value: { reason, message } });
        return;
      }
      default:
        assertNever(answer);
    }
  }

  /** Opens cores once the files of their job are here; a job has one set of files. */
  #open(effect: OpenEffect): void {
    const { from, job, order } = effect;
    const waiting = this.#opening.get(job);
    if (waiting !== undefined) {
      waiting.push(effect);
      this.#fetches.follow(job, from);
      return;
    }
    this.#opening.set(job, [effect]);
    this.#fetch(this.#fetches.want(job, from, order.files));
  }

  #fetch(effects: readonly FetchEffect[]): void {
    for (const effect of effects) {
      const { job } = effect;
      switch (effect.kind) {
        case "lookUp":
        case "keep":
          this.#effects.push(effect);
          break;
        case "get": {
          const { from: manager, hash, offset, request } = effect;
          if (this.#up.get(manager) !== true) {
            this.#fetch(this.#fetches.part(job, request, null, this.#now));
            break;
          }
          const pending = { kind: "get", manager, job, request } as const;
          this.#ask(pending, { name: "blobGet", correlation: 0, value: { hash, offset } });
          break;
        }
        case "ready":
          for (const open of this.#takeOpening(job)) this.#effects.push(open);
          break;
        case "failed":
          for (const { opened } of this.#takeOpening(job)) {
            for (const { slot } of opened)
              this.#step({ kind: "coreGone", slot, what: effect.problem });
          }
          break;
        default:
          assertNever(effect);
      }
    }
  }

  #takeOpening(job: string): readonly OpenEffect[] {
    const opening = this.#opening.get(job) ?? [];
    this.#opening.delete(job);
    return opening;
  }
}

/** Undefined for a worker that runs no job code. */
function rightsOf(executorUser: string | undefined): {
  readonly jobCodeRights: JobCodeRights;
  readonly executorUser: string;
} {
  if (executorUser === undefined) return { jobCodeRights: "", executorUser: "" };
  return { jobCodeRights: executorUser === "" ? "worker" : "executorUser", executorUser };
}
