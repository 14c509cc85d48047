/**
 * A datacenter in virtual time: real managers over real ledger nodes, fake workers and cores, and clients. Managers and
 * workers can fail and come back.
 */

import { millis } from "../../../base/brand.ts";
import type { NodeId } from "../../../base/ids.ts";
import { TestCluster, WALL } from "../../../ledger/node/testing/cluster.ts";
import type { WorkflowManifest } from "../../../load/job/manifest.ts";
import { manifest } from "../../../load/job/testing/manifest.ts";
import type { Extended, Extension } from "../../extension-messages.ts";
import type { GateAnswer, GateRequest } from "../../gate-messages.ts";
import {
  ANYWHERE,
  type ClientAnswer,
  type ClientRequest,
  type Control,
  ENDED_STATUSES,
  type Progress,
  type Submission,
} from "../../messages.ts";
import { datacenterKind } from "../datacenter-state.ts";
import { groupsIn } from "../lookup.ts";
import { Manager } from "../manager.ts";
import { MANAGER_RULES } from "../rules.ts";
import { decodeRunEntry, type RunEntry } from "../run-entries.ts";
import { RUN_KIND, RUN_PREFIX } from "../run-state.ts";
import { NO_QUOTAS, type Quotas } from "../tenants.ts";
import { MANAGER_DEFAULTS, type ManagerEffect, type ManagerInput } from "../types.ts";
import { ERROR_KINDS } from "./fake-core.ts";
import { FakeWorker } from "./fake-worker.ts";

const STEP_MS = 20;
const NOTHING = { data: new Uint8Array(), group: "" };
export const BUNDLE = "ab".repeat(32);

interface WorldOptions {
  readonly quotas?: Quotas;
  /** Finished jobs that the datacenter remembers. */
  readonly endedMax?: number;
  readonly datacenter?: string;
  readonly managers?: number;
  readonly workers?: number;
  /** Cores of each worker. */
  readonly cores?: number;
  /** How long each core generates load. */
  readonly loadMs?: number;
  /** Clock error of each manager. */
  readonly wallMs?: readonly number[];
}

export class World {
  readonly cluster: TestCluster;
  readonly workers: FakeWorker[];
  readonly logs: string[] = [];
  /** Called before an entry of a job is proposed. */
  onEntry: (entry: RunEntry) => void = () => undefined;
  /** Keeps results from reaching a quorum of the managers. */
  keepsNothing = false;
  /** Pinned blobs by manager. */
  readonly pinned = new Map<number, readonly string[]>();
  readonly #managers: (Manager | null)[] = [];
  readonly #datacenter: string;
  readonly #blobs = new Map<string, Uint8Array>();
  #unkept: { readonly manager: number; readonly hash: string }[] = [];
  readonly #answers = new Map<number, ClientAnswer | GateAnswer>();
  #extended: Extended | null = null;
  /** Proposals to the ledger, by its token: the manager and the manager's own token. */
  readonly #proposed = new Map<number, { readonly manager: number; readonly token: number }>();
  readonly #queue: { readonly manager: number; readonly input: ManagerInput }[] = [];
  readonly #events = new Map<number, { readonly worker: FakeWorker; readonly job: string }>();
  readonly #wallMs: readonly number[];
  readonly #quotas: Quotas;
  /** Managers cut off in both directions. */
  readonly #cut = new Set<number>();
  readonly #stopped = new Set<number>();
  readonly #unread: { readonly manager: number; readonly input: ManagerInput }[] = [];
  #ids = 0;
  #boots = 0;

  constructor(options: WorldOptions = {}) {
    const { cores = 2, loadMs = 1_000, managers = 1, wallMs = [], workers = 1 } = options;
    this.#datacenter = options.datacenter ?? "dc1";
    this.#wallMs = wallMs;
    this.#quotas = options.quotas ?? NO_QUOTAS;
    const kinds = [datacenterKind(MANAGER_RULES, options.endedMax), RUN_KIND];
    this.cluster = new TestCluster(Array(managers).fill("here"), {}, [0], managers, kinds);
    this.cluster.onSaid = (index, effect) => this.#push(index, effect);
    this.workers = Array.from(
      { length: workers },
      (_, at) => new FakeWorker(`w${at}`, cores, loadMs),
    );
    this.#blobs.set(BUNDLE, new Uint8Array(1));
    for (const index of this.cluster.nodes.keys()) this.#boot(index);
    this.run(100);
  }

  get now(): number {
    return this.cluster.now;
  }

  #boot(index: number): void {
    this.#managers[index] = new Manager(
      {
        self: this.cluster.at(index).id,
        datacenter: this.#datacenter,
        managers: this.cluster.nodes.map(({ id }) => id),
        addresses: {},
        boot: `b${this.#boots++}`,
        errorKinds: ERROR_KINDS,
        version: "1.0.0",
        machine: { node: "", platform: "", cpuModel: "" },
        config: { ...MANAGER_DEFAULTS, quotas: this.#quotas },
      },
      groupsIn(() => this.cluster.at(index).node),
    );
  }

  kill(index: number): void {
    this.#managers[index] = null;
    this.cluster.kill(this.cluster.at(index));
  }

  start(index: number): void {
    this.#boot(index);
    this.cluster.start(this.cluster.at(index));
    this.cluster.settle();
  }

  /** Pauses a manager; its inputs wait until it resumes. */
  stop(index: number, forMs: number): void {
    this.#stopped.add(index);
    this.run(forMs);
    this.#stopped.delete(index);
    this.#queue.unshift(...this.#unread.splice(0));
  }

  cut(index: number, isCut: boolean): void {
    this.cluster.at(index).cut = isCut;
    if (isCut) this.#cut.add(index);
    else this.#cut.delete(index);
  }

  /** Ends the process of a worker along with its connections. */
  killWorker(index: number): void {
    const worker = this.worker(index);
    worker.alive = false;
    for (const manager of this.#reachable())
      this.#push(manager, { kind: "workerClosed", worker: worker.name });
  }

  worker(index: number): FakeWorker {
    const worker = this.workers[index];
    if (worker === undefined) throw new Error(`there is no worker ${index}`);
    return worker;
  }

  /** Notifies a manager of a disk problem of a peer, or its own. */
  diskProblem(manager: number, peer: string, problem: string): void {
    this.#push(manager, { kind: "diskProblem", peer: peer as NodeId, problem });
    this.#pump();
  }

  /** Completes results withheld by `keepsNothing`, or fails them. */
  keep(problem: string | null): void {
    this.keepsNothing = false;
    for (const { hash, manager } of this.#unkept)
      this.#push(
        manager,
        problem === null
          ? { kind: "blobsReady", hashes: [hash] }
          : { kind: "blobNotKept", hash, problem },
      );
    this.#unkept = [];
  }

  /** Deletes every blob everywhere. */
  loseBlobs(): void {
    this.#blobs.clear();
  }

  /** The manager that leads a job; -1 for none. */
  leaderOf(job: string): number {
    return this.leaders((id) => id === `run/${job}`)[0] ?? -1;
  }

  /** The managers that lead a job with a matching id. */
  leaders(isWanted = (id: string): boolean => id.startsWith("run/")): readonly number[] {
    return this.#reachable().filter((index) =>
      [...(this.cluster.at(index).node?.groups ?? [])].some(
        ([id, group]) => isWanted(id) && group.replica.state.acting,
      ),
    );
  }

  #push(manager: number, input: ManagerInput): void {
    this.#queue.push({ manager, input });
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.cluster.run(STEP_MS);
      for (const worker of this.workers) this.#tickWorker(worker);
      for (const [index, manager] of this.#managers.entries())
        if ((manager?.nextDeadline() ?? Number.POSITIVE_INFINITY) <= this.now)
          this.#push(index, { kind: "tick" });
      this.#pump();
    }
  }

  until(condition: () => boolean, withinMs = 60_000): void {
    for (const end = this.now + withinMs; !condition(); this.run(STEP_MS))
      if (this.now >= end) throw new Error(`it did not come about within ${withinMs} ms`);
  }

  #tickWorker(worker: FakeWorker): void {
    if (!worker.alive) return;
    worker.tick(this.now);
    if (worker.cut) return;
    const { coreCount: cores, incarnation, name } = worker;
    if (worker.isBeatDue(this.now)) {
      const heartbeat = { kind: "heartbeat", worker: name, incarnation, cores } as const;
      const input = {
        ...heartbeat,
        version: "1.0.0",
        ...worker.report(this.now),
        ...worker.rights,
      };
      for (const index of this.#reachable())
        this.#push(index, { kind: "heartbeat", heartbeat: input });
    }
    for (const [job, held] of worker.jobs) {
      if (held.underWay || held.waiting.length === 0) continue;
      held.underWay = true;
      const id = ++this.#ids;
      this.#events.set(id, { worker, job });
      const { nextEvent: first, view } = held;
      const row = { first, events: held.waiting.slice(0, 50) };
      const events = { kind: "events", worker: name, incarnation, job, view, ...row } as const;
      if (!this.#reachable().includes(held.manager)) this.#onEventsAnswer(id, null);
      else this.#push(held.manager, { kind: "events", id, events });
    }
  }

  #reachable(): readonly number[] {
    return [...this.#managers.keys()].filter(
      (index) => this.#managers[index] !== null && !this.#cut.has(index),
    );
  }

  #onEventsAnswer(id: number, next: number | null): void {
    const asked = this.#events.get(id);
    this.#events.delete(id);
    const held = asked?.worker.jobs.get(asked.job);
    if (held === undefined) return;
    held.underWay = false;
    if (next === null) return;
    held.waiting.splice(0, next - held.nextEvent);
    held.nextEvent = next;
  }

  #pump(): void {
    for (;;) {
      this.#hearLedger();
      const next = this.#queue.shift();
      if (next === undefined) return;
      if (this.#stopped.has(next.manager)) {
        this.#unread.push(next);
        continue;
      }
      const manager = this.#managers[next.manager];
      const wall = WALL + this.now + (this.#wallMs[next.manager] ?? 0);
      const effects = manager?.step(next.input, millis(this.now), wall) ?? [];
      for (const effect of effects) this.#perform(next.manager, effect);
    }
  }

  #hearLedger(): void {
    for (const [asked, { manager, token }] of this.#proposed) {
      const answer = this.cluster.answers.get(asked);
      if (answer === undefined) continue;
      this.#proposed.delete(asked);
      this.#push(manager, { kind: "proposed", token, answer });
    }
  }

  #perform(manager: number, effect: ManagerEffect): void {
    switch (effect.kind) {
      case "propose": {
        const { data, group } = "data" in effect.request ? effect.request : NOTHING;
        const entry = group.startsWith(RUN_PREFIX) ? decodeRunEntry(data) : null;
        if (entry !== null) this.onEntry(entry);
        const asked = this.cluster.request(manager, effect.request);
        this.#proposed.set(asked, { manager, token: effect.token });
        return;
      }
      case "worker": {
        const worker = this.workers.find(({ name }) => name === effect.worker);
        const reached =
          worker?.alive === true && !worker.cut && !worker.deaf && !this.#cut.has(manager);
        const answer = reached ? worker.take(effect.message, manager, this.now) : null;
        this.#push(manager, { kind: "workerAnswer", id: effect.id, answer });
        return;
      }
      case "answer":
        this.#onAnswer(effect);
        return;
      case "keepBlob":
        this.#blobs.set(effect.hash, effect.bytes);
        if (this.keepsNothing) this.#unkept.push({ manager, hash: effect.hash });
        else this.#push(manager, { kind: "blobsReady", hashes: [effect.hash] });
        return;
      case "replicateBlobs":
        for (const hash of effect.hashes) {
          const kind = this.#blobs.has(hash) ? "blobsReady" : "blobsAbsent";
          this.#push(manager, { kind, hashes: [hash] });
        }
        return;
      case "pinBlobs":
        this.pinned.set(manager, effect.hashes);
        return;
      case "readBlob": {
        const bytes = this.#blobs.get(effect.hash) ?? null;
        this.#push(manager, { kind: "blobRead", hash: effect.hash, bytes });
        return;
      }
      case "giveUp":
        this.cluster.giveUp(this.cluster.at(manager));
        return;
      case "mayRest":
        this.cluster.mayRest(this.cluster.at(manager), effect.group);
        return;
      case "forget":
        this.cluster.forget(this.cluster.at(manager), effect.groups, effect.by);
        return;
      case "log":
        this.logs.push(`${effect.event} ${JSON.stringify(effect.fields)}`);
    }
  }

  #onAnswer({ answer, id }: Extract<ManagerEffect, { kind: "answer" }>): void {
    if (this.#events.has(id))
      this.#onEventsAnswer(id, answer.kind === "taken" ? answer.next : null);
    else if (answer.kind === "extended") this.#extended = answer;
    else if (answer.kind !== "taken") this.#answers.set(id, answer);
  }

  ask(request: ClientRequest, manager = 0): ClientAnswer {
    const id = this.post({ kind: "client", request }, manager);
    this.until(() => this.#answers.has(id));
    const answer = this.takeAnswer(id);
    if (answer === null) throw new Error("no answer");
    return answer as ClientAnswer;
  }

  /** Sends a request to a manager without waiting; `takeAnswer` returns the answer once it has arrived. */
  post(
    asked:
      | { readonly kind: "client"; readonly request: ClientRequest }
      | { readonly kind: "gate"; readonly request: GateRequest },
    manager: number,
  ): number {
    const id = ++this.#ids;
    this.#push(manager, { ...asked, id });
    this.#pump();
    return id;
  }

  /** Sends a worker's request for more time to a manager. */
  askForTime(extension: Extension, manager = 0): Extended {
    this.#push(manager, { kind: "extension", id: ++this.#ids, extension });
    this.#pump();
    if (this.#extended === null) throw new Error("no answer");
    return this.#extended;
  }

  takeAnswer(id: number): ClientAnswer | GateAnswer | null {
    const answer = this.#answers.get(id) ?? null;
    this.#answers.delete(id);
    return answer;
  }

  /** Timeout counters of a manager. */
  timeouts(manager: number): Manager["timeouts"] {
    const view = this.#managers[manager]?.timeouts;
    if (view === undefined) throw new Error(`manager ${manager} is down`);
    return view;
  }

  workflows(manager: number): Manager["workflows"] | null {
    return this.#managers[manager]?.workflows ?? null;
  }

  health(manager: number): Manager["health"] | null {
    return this.#managers[manager]?.health ?? null;
  }

  /** How often a leader continued the clock of another. */
  get leaderTransfers(): number {
    return this.#reachable().reduce(
      (sum, index) => sum + (this.timeouts(index).counts.leaderTransfers.get("") ?? 0),
      0,
    );
  }

  isUp(manager: number): boolean {
    return this.#managers[manager] != null;
  }

  blob(hash: string): Uint8Array | null {
    return this.#blobs.get(hash) ?? null;
  }

  putBlob(hash: string, bytes: Uint8Array): void {
    this.#blobs.set(hash, bytes);
    for (const index of this.#managers.keys())
      this.#push(index, { kind: "blobsReady", hashes: [hash] });
  }

  control(job: string, control: Control, wish?: string): ClientAnswer {
    for (;;) {
      const request = { kind: "control", job, by: "ada", control, wish } as const;
      const answer = this.ask(request, Math.max(0, this.leaderOf(job)));
      if (answer.kind !== "refused" || !["retry", "notLeader"].includes(answer.reason))
        return answer;
      this.run(STEP_MS);
    }
  }

  /** Takes the leader of the job down until another one leads, then restarts it. */
  replaceLeader(job: string): void {
    const gone = Math.max(0, this.leaderOf(job));
    this.kill(gone);
    this.until(() => this.leaderOf(job) >= 0);
    this.start(gone);
  }

  submit(changes: Partial<Submission> = {}, key = "key", manager = 0): string {
    const answer = this.ask(
      { kind: "submit", key, submission: submission(changes), routing: ANYWHERE },
      manager,
    );
    if (answer.kind !== "accepted") throw new Error(JSON.stringify(answer));
    return answer.job;
  }

  /** Progress of a job, from any manager that knows it. */
  progress(job: string): Progress | null {
    for (const index of this.#reachable()) {
      const answer = this.ask({ kind: "watch", job, line: 0, live: true, latencies: false }, index);
      if (answer.kind === "progress") return answer;
    }
    return null;
  }

  end(job: string): Progress {
    let last: Progress | null = null;
    this.until(() => {
      last = this.progress(job);
      return ENDED_STATUSES.some((one) => one === last?.status);
    });
    if (last === null) throw new Error("no progress");
    return last;
  }

  /** Calls actually made by the cores of all workers. */
  calls(): number {
    const cores = this.workers.flatMap(({ opened }) => opened);
    return cores.reduce((sum, { calls }) => sum + calls, 0);
  }
}

export function submission(changes: Partial<Submission> = {}): Submission {
  const manifests: readonly WorkflowManifest[] = [manifest("shop")];
  return {
    ...{ name: "flow.ts", title: null, tags: {}, manifests, entry: "bundle.mjs" },
    files: [{ path: "bundle.mjs", hash: BUNDLE, bytes: 1 }],
    ...{ overrides: {}, thresholds: [], abortAfterMs: null, timeoutMs: null },
    ...{ cores: null, held: false, command: "submit flow.ts", version: "1.0.0" },
    ...changes,
  };
}
