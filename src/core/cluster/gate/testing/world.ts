/**
 * Gates and datacenters in virtual time: real gates on real ledger nodes, and a simulated cluster of managers per
 * datacenter. Gates, managers and whole datacenters can be lost and return.
 */

import { millis } from "../../../base/brand.ts";
import { TestCluster, WALL } from "../../../ledger/node/testing/cluster.ts";
import { ERROR_KINDS } from "../../manager/testing/fake-core.ts";
import { BUNDLE, World as Datacenter, submission } from "../../manager/testing/world.ts";
import {
  ANYWHERE,
  type ClientAnswer,
  type ClientRequest,
  ENDED_STATUSES,
  type Progress,
  type Routing,
  type Submission,
} from "../../messages.ts";
import type { BackpressureLevel } from "../../overload/backpressure.ts";
import type { OverloadState } from "../../views.ts";
import { Gate } from "../gate.ts";
import type { JobReport } from "../job-report.ts";
import { lookupIn } from "../lookup.ts";
import { identityOfSpec } from "../spec.ts";
import {
  GATE_DEFAULTS,
  type GateEffect,
  type GateInput,
  type GateLookup,
  type ManagerAnswer,
} from "../types.ts";

const STEP_MS = 20;

interface GateWorldOptions {
  readonly gates?: number;
  readonly datacenters?: readonly string[];
  /** Managers per datacenter. */
  readonly managers?: number;
  readonly workers?: number;
  readonly cores?: number;
  readonly loadMs?: number;
}

interface Asked {
  readonly gate: number;
  /** Request id of the gate, and of the datacenter. */
  readonly id: number;
  readonly posted: number;
  readonly datacenter: Datacenter;
  readonly until: number;
}

export class GateWorld {
  readonly cluster: TestCluster;
  readonly datacenters: ReadonlyMap<string, Datacenter>;
  readonly logs: string[] = [];
  /** Reports of gates to their reporters. */
  readonly reports: { readonly gate: number; readonly report: JobReport }[] = [];
  /** Datacenters that the gates cannot reach. */
  readonly cut = new Set<string>();
  /** Number of polls of a job. */
  observations = 0;
  /** Number of uploaded chunks. */
  uploads = 0;
  /** Number of ticks of all gates. */
  ticks = 0;
  readonly #gates: (Gate | null)[] = [];
  readonly #blobs = new Map<string, Uint8Array>([[BUNDLE, new Uint8Array(1)]]);
  readonly #answers = new Map<number, ClientAnswer>();
  readonly #requested = new Map<number, { readonly gate: number; readonly token: number }>();
  readonly #queue: { readonly gate: number; readonly input: GateInput }[] = [];
  #asked: Asked[] = [];
  #ids = 0;
  #boots = 0;

  constructor(options: GateWorldOptions = {}) {
    const { datacenters = ["dc1"], gates = 1, managers = 1, workers = 1 } = options;
    const { cores = 2, loadMs = 1_000 } = options;
    this.cluster = new TestCluster(
      Array(gates).fill("here"),
      { identityOf: identityOfSpec },
      null,
      gates,
      [],
    );
    this.cluster.onSaid = (index, effect) =>
      this.#push(
        index,
        effect.kind === "applied" ? { kind: "applied", group: effect.group } : effect,
      );
    this.datacenters = new Map(
      datacenters.map((datacenter) => [
        datacenter,
        new Datacenter({ datacenter, managers, workers, cores, loadMs }),
      ]),
    );
    for (const index of this.cluster.nodes.keys()) this.#boot(index);
    this.run(1_500);
  }

  get now(): number {
    return this.cluster.now;
  }

  datacenter(name: string): Datacenter {
    const found = this.datacenters.get(name);
    if (found === undefined) throw new Error(`no datacenter ${name}`);
    return found;
  }

  #boot(index: number): void {
    // A restarted gate has a new ledger node.
    const none = { groups: new Map(), knowsKey: () => false, openJobs: () => [] };
    const inNode = (): GateLookup => lookupIn(this.cluster.at(index).node ?? none);
    const lookup: GateLookup = {
      job: (id) => inNode().job(id),
      jobs: () => inNode().jobs(),
      openJobs: () => inNode().openJobs(),
      knows: (key) => inNode().knows(key),
    };
    this.#gates[index] = new Gate(
      {
        self: this.cluster.at(index).id,
        gates: this.cluster.nodes.map(({ id }) => id),
        boot: `b${this.#boots++}`,
        version: "1.0.0",
        errorKinds: ERROR_KINDS,
        addresses: Object.fromEntries(this.cluster.nodes.map(({ id }) => [id, `${id}:1`])),
        datacenters: [...this.datacenters].map(([name, { cluster }]) => ({
          name,
          managers: cluster.nodes.map(({ id }) => id),
        })),
        config: GATE_DEFAULTS,
      },
      lookup,
    );
    this.#push(index, { kind: "blobsHeld", hashes: [...this.#blobs.keys()] });
    for (const [datacenter, { cluster }] of this.datacenters)
      for (const { id: manager } of cluster.nodes)
        this.#push(index, { kind: "link", datacenter, manager, up: true });
  }

  kill(index: number): void {
    this.#gates[index] = null;
    this.cluster.kill(this.cluster.at(index));
  }

  start(index: number): void {
    this.#boot(index);
    this.cluster.start(this.cluster.at(index));
    this.cluster.settle();
  }

  /** Removes all files from the gates. */
  loseFiles(): void {
    this.#blobs.clear();
  }

  /** Requests reports from every live gate, as the driver does twice a second. */
  look(): void {
    for (const [index, gate] of this.#gates.entries())
      if (gate !== null) this.#push(index, { kind: "report" });
    this.run(500);
  }

  /** Connects all gates to each other. */
  meet(): void {
    for (const index of this.#gates.keys())
      for (const { id: peer } of this.cluster.nodes)
        if (peer !== this.cluster.at(index).id)
          this.#push(index, { kind: "peer", peer, up: true, version: "1.0.0" });
    this.run(STEP_MS);
  }

  /** Sets the overload level of a gate. */
  press(index: number, level: BackpressureLevel, state: OverloadState = "healthy"): void {
    this.#push(index, { kind: "pressed", level, state });
  }

  /** Index of the gate that leads a job; -1 for none. */
  leaderOf(job: string): number {
    return this.cluster.nodes.findIndex(({ node }) =>
      [...(node?.groups ?? [])].some(([id, group]) => id === job && group.replica.state.acting),
    );
  }

  #push(gate: number, input: GateInput): void {
    this.#queue.push({ gate, input });
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.cluster.run(STEP_MS);
      for (const one of this.datacenters.values()) one.run(STEP_MS);
      for (const [index, gate] of this.#gates.entries())
        if ((gate?.nextDeadline() ?? Number.POSITIVE_INFINITY) <= this.now) {
          this.ticks++;
          this.#push(index, { kind: "tick" });
        }
      this.#pump();
    }
  }

  until(condition: () => boolean, withinMs = 60_000): void {
    for (const end = this.now + withinMs; !condition(); this.run(STEP_MS))
      if (this.now >= end) throw new Error(`it did not come about within ${withinMs} ms`);
  }

  #pump(): void {
    for (;;) {
      this.#hearLedger();
      this.#hearManagers();
      const next = this.#queue.shift();
      if (next === undefined) return;
      const gate = this.#gates[next.gate];
      const effects = gate?.step(next.input, millis(this.now), WALL + this.now) ?? [];
      for (const effect of effects) this.#perform(next.gate, effect);
    }
  }

  #hearLedger(): void {
    for (const [asked, { gate, token }] of this.#requested) {
      const answer = this.cluster.answers.get(asked);
      if (answer === undefined) continue;
      this.#requested.delete(asked);
      this.#push(gate, { kind: "ledger", token, answer });
    }
  }

  #hearManagers(): void {
    this.#asked = this.#asked.filter(({ datacenter, gate, id, posted, until }) => {
      const answer = datacenter.takeAnswer(posted);
      if (answer === null && this.now < until) return true;
      this.#push(gate, { kind: "answered", id, answer });
      return false;
    });
  }

  #perform(gate: number, effect: GateEffect): void {
    switch (effect.kind) {
      case "ledger": {
        const asked = this.cluster.request(gate, effect.request);
        this.#requested.set(asked, { gate, token: effect.token });
        return;
      }
      case "ask":
        this.#ask(gate, effect);
        return;
      case "answer":
        this.#answers.set(effect.id, effect.answer);
        return;
      case "keepBlob":
        this.#blobs.set(effect.hash, effect.bytes);
        this.#push(gate, { kind: "blobsHeld", hashes: [effect.hash] });
        return;
      case "readBlob": {
        const { hash } = effect;
        this.#push(gate, { kind: "blobRead", hash, bytes: this.#blobs.get(hash) ?? null });
        return;
      }
      case "readPart": {
        const { hash, id, offset } = effect;
        const whole = this.#blobs.get(hash) ?? null;
        const bytes = whole?.subarray(offset) ?? null;
        this.#push(gate, { kind: "partRead", id, total: whole?.length ?? 0, bytes });
        return;
      }
      case "report":
        this.reports.push({ gate, report: effect.report });
        return;
      case "giveUp":
        this.cluster.giveUp(this.cluster.at(gate));
        return;
      case "tellPeers": {
        const { id: peer } = this.cluster.at(gate);
        for (const other of this.#gates.keys())
          if (other !== gate)
            this.#push(other, { kind: "peerHealth", peer, health: effect.health });
        return;
      }
      case "passOver":
        this.cluster.at(gate).node?.take(effect, millis(this.now), WALL + this.now);
        return;
      case "log":
        this.logs.push(`${effect.event} ${JSON.stringify(effect.fields)}`);
    }
  }

  #ask(gate: number, effect: Extract<GateEffect, { kind: "ask" }>): void {
    const { datacenter: name, id, manager, message, timeoutMs } = effect;
    const datacenter = this.datacenter(name);
    const at = datacenter.cluster.nodes.findIndex((one) => one.id === manager);
    const answered = (answer: ManagerAnswer | null): void =>
      this.#push(gate, { kind: "answered", id, answer });
    if (this.cut.has(name) || !datacenter.isUp(at)) answered(null);
    else if (message.kind === "blobPut") {
      const { bytes, hash } = message;
      this.uploads++;
      datacenter.putBlob(hash, bytes);
      answered({ kind: "blobHeld", bytes: bytes.length });
    } else if (message.kind === "blobGet") {
      const bytes = datacenter.blob(message.hash);
      if (bytes === null) answered({ kind: "refused", reason: "unknownBlob", message: "" });
      else
        answered({
          ...{ kind: "blobChunk", total: bytes.length },
          bytes: bytes.subarray(message.offset),
        });
    } else {
      if (message.kind === "gate" && message.request.kind === "observe") this.observations++;
      const posted = datacenter.post(message, at);
      this.#asked.push({ gate, id, posted, datacenter, until: this.now + timeoutMs });
    }
  }

  /** Sends a request without waiting; the returned function gives the answer once it has come. */
  post(request: ClientRequest, gate = 0): () => ClientAnswer | null {
    const id = ++this.#ids;
    this.#push(gate, { kind: "client", id, request });
    this.#pump();
    return () => this.#answers.get(id) ?? null;
  }

  /** Sends all requests before any is answered. */
  askAtOnce(requests: readonly ClientRequest[], gate = 0): readonly ClientAnswer[] {
    const ids = requests.map((request) => {
      this.#push(gate, { kind: "client", id: ++this.#ids, request });
      return this.#ids;
    });
    this.until(() => ids.every((id) => this.#answers.has(id)));
    return ids.flatMap((id) => this.#answers.get(id) ?? []);
  }

  ask(request: ClientRequest, gate = 0): ClientAnswer {
    const answer = this.post(request, gate);
    this.until(() => answer() !== null);
    const result = answer();
    if (result === null) throw new Error("no answer");
    return result;
  }

  submit(
    changes: Partial<Submission> = {},
    routing: Partial<Routing> = {},
    { gate = 0, key = "key" } = {},
  ): string {
    const answer = this.ask(
      {
        ...{ kind: "submit", key, submission: submission(changes) },
        routing: { ...ANYWHERE, ...routing },
      },
      gate,
    );
    if (answer.kind !== "accepted") throw new Error(JSON.stringify(answer));
    return answer.job;
  }

  /** Progress from any gate that can answer. */
  progress(job: string): Progress | null {
    for (const [index, gate] of this.#gates.entries()) {
      if (gate === null) continue;
      const answer = this.ask({ kind: "watch", job, line: 0, live: true, latencies: false }, index);
      if (answer.kind === "progress") return answer;
    }
    return null;
  }

  /** Timeout view of a gate. */
  timeouts(gate: number): Gate["timeouts"] {
    const view = this.#gates[gate]?.timeouts;
    if (view === undefined) throw new Error(`gate ${gate} is down`);
    return view;
  }

  status(job: string): string {
    return this.progress(job)?.status ?? "";
  }

  end(job: string, withinMs = 60_000): Progress {
    let last: Progress | null = null;
    this.until(() => {
      last = this.progress(job);
      return ENDED_STATUSES.some((one) => one === last?.status);
    }, withinMs);
    if (last === null) throw new Error("no progress");
    return last;
  }

  /** Calls actually made by the cores of all workers. */
  calls(): number {
    return [...this.datacenters.values()].reduce((sum, one) => sum + one.calls(), 0);
  }
}
