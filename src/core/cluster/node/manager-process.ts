/**
 * A manager process as one state machine: the ledger node that replicates between managers, and on top of it the
 * manager, its workers and its clients.
 *
 *   bytes ─▶ LedgerMachine ─┬─ leads, applied, answers ─▶ Manager ─┬─▶ propose ─▶ LedgerMachine
 *                           └─ called: workers, clients ─▶    │    └─▶ orders, answers ─▶ say ─▶ bytes
 *   blobs on disk ────────────────────────────────────────────┘
 *
 * Workers and clients connect; a manager answers on their connection. Every request to a worker completes,
 * by its deadline or with its connection at the latest.
 */

import { ADMISSION_LIMITS } from "../../../wire/admission.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import { clipText } from "../../base/text.ts";
import type { FileEffect } from "../../ledger/log/files.ts";
import type { GateAnswer } from "../gate-messages.ts";
import { startsOf } from "../incarnation.ts";
import type { StreamId } from "../link/types.ts";
import type { ManagerEffect, ManagerInput, ManagerOptions } from "../manager/types.ts";
import {
  type Announced,
  type BlobHash,
  type ClientAnswer,
  DISK_PROBLEM_CHARACTERS_MAX,
  type Refusal,
  type Taken,
} from "../messages.ts";
import { type PressureView, RequestGuard } from "../overload/request-guard.ts";
import { PRESSURE_RULES, type PressureRules } from "../overload/rules.ts";
import type { AboveEffect, AboveInput } from "./above.ts";
import { Askers, type CodeFrom } from "./askers.ts";
import type { LedgerMachine } from "./ledger-machine.ts";
import { ManagerBlobs } from "./manager-blobs.ts";
import { type Steered, steeringOf } from "./steering.ts";
import type { ProcessEffect, ProcessInput } from "./types.ts";

/** The manager itself, a pure state machine on top of the ledger. */
type ManagerSelf = Pick<ManagerOptions, "self" | "managers" | "addresses"> & {
  readonly codeFrom?: CodeFrom;
};

interface ManagerMachine {
  step(input: ManagerInput, now: Millis, wall: number): readonly ManagerEffect[];
  nextDeadline(): Millis | null;
}

/** Timeout of a request to a worker; the manager then retries. */
const ANSWER_MS_MAX = 5_000;

type ManagerProcessInput = ProcessInput | AboveInput;
type ManagerProcessEffect = ProcessEffect | AboveEffect | Steered;

type Opening = Extract<ManagerInput, { kind: "heartbeat" }>["heartbeat"];

interface Caller {
  readonly role: "worker" | "client" | "manager" | "gate";
  readonly name: string;
}

/** Destination of an answer. */
type Asker =
  | {
      readonly what: "events" | "extension" | "client" | "gate" | "blob";
      readonly stream: StreamId;
      readonly correlation: number;
      /** Set for `blobGet`. */
      readonly hash?: BlobHash;
    }
  /** Copy between managers. */
  | { readonly what: "copy"; readonly request: number; readonly stream?: never };
type RemoteAsker = Exclude<Asker, { readonly what: "copy" }>;

export class ManagerProcess {
  readonly ledger: LedgerMachine;
  readonly #name: NodeId;
  readonly #manager: ManagerMachine;
  readonly #blobs: ManagerBlobs;
  /** Addresses of all managers, for clients. */
  readonly #addresses: readonly string[];
  readonly #callers = new Map<StreamId, Caller>();
  /** Connection of each worker; a newer one replaces it. */
  readonly #workers = new Map<string, StreamId>();
  /** Process on each of these connections. */
  readonly #processes = new Map<string, { readonly boot: string; readonly incarnation: number }>();
  readonly #guard: RequestGuard;
  readonly #askers: Askers<Asker>;
  /** Connection of each open request to a worker. */
  readonly #pending = new Map<number, StreamId>();
  readonly #deadlines = new Deadlines<number>();
  #reportedDisk = "";
  #inputs: ManagerInput[] = [];
  #effects: ManagerProcessEffect[] = [];
  #now = 0 as Millis;
  #wall = 0;

  constructor(
    { addresses, codeFrom, managers, self }: ManagerSelf,
    ledger: LedgerMachine,
    manager: ManagerMachine,
    rules: PressureRules = PRESSURE_RULES,
  ) {
    this.#guard = new RequestGuard(ADMISSION_LIMITS.manager, {}, rules);
    this.#askers = new Askers<Asker>(this.#guard, codeFrom);
    this.#name = self;
    this.#addresses = Object.values(addresses);
    this.ledger = ledger;
    this.#manager = manager;
    this.#blobs = new ManagerBlobs(self, managers, {
      local: ({ request, ...part }) =>
        this.#effects.push({ ...part, id: this.#askers.add({ what: "copy", request }) }),
      peer: (peer, message) => this.#askPeer(peer, message),
      input: (input) => this.#inputs.push(input),
      perform: (effect) => this.#effects.push(effect),
    });
  }

  get wantsTurn(): boolean {
    return this.ledger.wantsTurn;
  }

  /** Number of callers that have identified themselves. */
  get callers(): { readonly workers: number; readonly clients: number } {
    const workers = this.#workers.size;
    return { workers, clients: this.#callers.size - workers };
  }

  take(input: ManagerProcessInput, now: Millis, wall: number): void {
    this.#now = now;
    this.#wall = wall;
    this.#askers.at(now);
    switch (input.kind) {
      case "pressure":
        this.#effects.push(...this.#guard.sample(input, now, this.ledger.undurable.delayMs(now)));
        this.#inputs.push({ kind: "late", lagMs: input.lagMs });
        return;
      case "blobsHeld":
        this.#blobs.onHeld(input.hashes, now);
        this.#reportDisk();
        return;
      case "blobsGone":
        this.#blobs.onGone(input.hashes);
        return;
      case "blobRead":
        if (input.bytes === null) this.#blobs.onMissed(input.hash, now);
        this.#inputs.push(input);
        return;
      case "blobNotKept":
        this.#blobs.onNotKept(input.hash, input.problem, now);
        this.#reportDisk();
        return;
      case "blobPart":
        this.#onBlobPart(input);
        return;
      case "blobPutDone":
        this.#onBlobPut(input);
        return;
      case "tick":
        for (const id of this.#deadlines.takeDue(now)) this.#answered(id, null);
        this.#blobs.tick(now);
        this.#inputs.push({ kind: "tick" });
        this.ledger.take(input, now, wall);
        return;
      default:
        this.ledger.take(input, now, wall);
    }
  }

  flush(): readonly ManagerProcessEffect[] {
    for (;;) {
      for (const effect of this.ledger.flush()) this.#onLedger(effect);
      if (this.#inputs.length === 0) break;
      const inputs = this.#inputs;
      this.#inputs = [];
      for (const input of inputs)
        for (const effect of this.#manager.step(input, this.#now, this.#wall))
          this.#perform(effect);
    }
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  get pressure(): PressureView {
    return this.#guard.view(this.#now);
  }

  takeFiles(): readonly FileEffect[] {
    return this.ledger.takeFiles();
  }

  nextDeadline(): Millis | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(
      this.ledger.nextDeadline() ?? never,
      this.#manager.nextDeadline() ?? never,
      this.#blobs.nextDeadline() ?? never,
      this.#deadlines.next() ?? never,
    );
    return at === never ? null : (at as Millis);
  }

  #onLedger(effect: ProcessEffect): void {
    switch (effect.kind) {
      case "answer":
        // Tokens of the manager are negative; others belong to callers of the node itself.
        if (effect.token >= 0) break;
        this.#inputs.push({ kind: "proposed", token: -effect.token, answer: effect.answer });
        return;
      case "leads": {
        const { group, leads, view } = effect;
        this.#inputs.push({ kind: "leads", group, view, leads });
        break;
      }
      case "applied": {
        const { entry, group, isRecovered, outcome } = effect;
        this.#inputs.push({ kind: "applied", group, entry, outcome, isRecovered });
        break;
      }
      case "peer": {
        this.#blobs.onPeer(effect.peer, effect.up, this.#now);
        this.#inputs.push(effect);
        break;
      }
      case "peerDrains":
      case "diskProblem":
        this.#inputs.push(effect);
        break;
      case "peerAnswered":
        this.#blobs.onPeerAnswer(effect.message, this.#now);
        return;
      case "called":
        this.#onCalled(effect);
        return;
      case "callerGone":
        this.#onCallerGone(effect.stream, effect.byPeer);
        return;
      default:
    }
    this.#effects.push(effect);
  }

  #onCalled(called: Extract<ProcessEffect, { kind: "called" }>): void {
    const { message, name, role, stream } = called;
    const { correlation } = message;
    switch (message.name) {
      case "heartbeat": {
        const heartbeat = { kind: "heartbeat", ...message.value } as const;
        if (!this.#acceptsHeartbeat(stream, correlation, heartbeat)) return;
        this.#meet(stream, { role, name });
        if (heartbeat.worker === name) this.#inputs.push({ kind: "heartbeat", heartbeat });
        return;
      }
      case "clientOpening":
        this.#meet(stream, { role, name });
        this.#welcome(stream, correlation);
        return;
      case "events": {
        const { worker } = message.value;
        if (worker !== name) {
          const problem = `${name} does not speak for ${worker}`;
          this.#deny({ correlation, stream }, { reason: "invalid", message: problem });
          return;
        }
        const id = this.#askers.add({ stream, correlation, what: "events" });
        this.#inputs.push({ kind: "events", id, events: { kind: "events", ...message.value } });
        return;
      }
      case "extension": {
        if (message.value.worker !== name) return;
        const id = this.#askers.add({ stream, correlation, what: "extension" });
        const extension = { kind: "extension", ...message.value } as const;
        this.#inputs.push({ kind: "extension", id, extension });
        return;
      }
      case "clientRequest": {
        const id = this.#askers.admit({ stream, correlation, what: "client" }, called);
        if (typeof id !== "number")
          this.#say(stream, { name: "clientAnswer", correlation, value: id });
        const begun = this.#askers.begun(id);
        if (begun !== null)
          this.#inputs.push({ kind: "client", id: begun, request: message.value });
        if (typeof id === "number") this.#effects.push(...steeringOf(called));
        return;
      }
      case "gateRequest": {
        const id = this.#askers.add({ stream, correlation, what: "gate" });
        this.#inputs.push({ kind: "gate", id, request: message.value });
        return;
      }
      case "blobGet": {
        const asker = { stream, correlation, what: "blob", hash: message.value.hash } as const;
        this.#sendPart(this.#askers.add(asker), message.value);
        return;
      }
      case "blobPut": {
        const id = this.#askers.admit({ stream, correlation, what: "blob" }, called);
        if (typeof id === "number") this.#effects.push({ kind: "blobPut", id, ...message.value });
        else this.#deny({ correlation, stream }, id);
        return;
      }
      case "announced":
        this.#answered(correlation, { kind: "announced", ...message.value }, stream);
        return;
      case "taken":
        this.#answered(correlation, { kind: "taken", ...message.value }, stream);
        return;
      case "denial":
        this.#answered(correlation, { kind: "refused", ...message.value }, stream);
        return;
      default:
    }
  }

  /** Reports a change of the disk problem to all managers, for `hyperscale nodes`. */
  #reportDisk(): void {
    const problem = clipText(this.diskProblem ?? "", DISK_PROBLEM_CHARACTERS_MAX);
    if (problem === this.#reportedDisk) return;
    this.#reportedDisk = problem;
    this.#inputs.push({ kind: "diskProblem", peer: this.#name, problem });
    this.ledger.take({ kind: "tellDisk", problem }, this.#now, this.#wall);
  }

  /** Reason why the disk recently rejected a result; null if it works. */
  get diskProblem(): string | null {
    return this.#blobs.diskProblem;
  }

  /** The first heartbeat opens a connection; later ones count unless another process has replaced it. */
  #acceptsHeartbeat(stream: StreamId, correlation: number, opening: Opening): boolean {
    if (correlation !== 0) return this.#opens(stream, correlation, opening);
    return this.#workers.get(opening.worker) === stream;
  }

  /**
   * Refuses a second worker with the same name while the first is connected, because each would receive the other's
   * orders.
   */
  #opens(
    stream: StreamId,
    correlation: number,
    { boot = "", incarnation, worker }: Opening,
  ): boolean {
    const at = this.#workers.get(worker);
    const known = this.#processes.get(worker);
    const isAnother = known !== undefined && boot !== "" && known.boot !== boot;
    if (at !== undefined && isAnother && startsOf(incarnation) <= startsOf(known.incarnation)) {
      const message = `another worker has the name ${worker}: names are unique, rename one`;
      this.#deny({ correlation, stream }, { reason: "invalid", message });
      this.#effects.push({
        kind: "log",
        level: "error",
        event: "worker.nameTaken",
        fields: { worker },
      });
      return false;
    }
    this.#processes.set(worker, { boot, incarnation });
    this.#welcome(stream, correlation);
    return true;
  }

  #meet(stream: StreamId, caller: Caller): void {
    this.#callers.set(stream, caller);
    if (caller.role === "worker") this.#workers.set(caller.name, stream);
  }

  #welcome(stream: StreamId, correlation: number): void {
    const value = { manager: this.#name, addresses: this.#addresses };
    this.#say(stream, { name: "opened", correlation, value });
  }

  #onCallerGone(stream: StreamId, byPeer: boolean): void {
    const caller = this.#callers.get(stream);
    this.#callers.delete(stream);
    if (caller !== undefined && this.#workers.get(caller.name) === stream) {
      this.#workers.delete(caller.name);
      this.#processes.delete(caller.name);
      if (byPeer) this.#inputs.push({ kind: "workerClosed", worker: caller.name });
    }
    for (const [id, on] of [...this.#pending]) if (on === stream) this.#answered(id, null);
    this.#askers.forget(stream);
  }

  /** `on`: connection of the answer, which must be the one that was asked. */
  #answered(id: number, answer: Announced | Taken | Refusal | null, on?: StreamId): void {
    const stream = this.#pending.get(id);
    if (stream === undefined || (on !== undefined && on !== stream)) return;
    this.#pending.delete(id);
    this.#deadlines.delete(id);
    this.#inputs.push({ kind: "workerAnswer", id, answer });
  }

  #perform(effect: ManagerEffect): void {
    switch (effect.kind) {
      case "propose": {
        const { request, token } = effect;
        this.ledger.take({ kind: "request", token: -token, request }, this.#now, this.#wall);
        return;
      }
      case "worker":
        this.#order(effect);
        return;
      case "answer":
        this.#answer(effect);
        return;
      case "keepBlob":
      case "readBlob":
      case "replicateBlobs":
      case "pinBlobs":
        this.#blobs.ask(effect, this.#now);
        return;
      case "giveUp":
      case "mayRest":
      case "forget":
        this.ledger.take(effect, this.#now, this.#wall);
        return;
      case "log":
        this.#effects.push(effect);
        return;
      default:
        assertNever(effect);
    }
  }

  #order({ id, message, worker }: Extract<ManagerEffect, { kind: "worker" }>): void {
    const stream = this.#workers.get(worker);
    if (stream === undefined) {
      this.#inputs.push({ kind: "workerAnswer", id, answer: null });
      return;
    }
    this.#pending.set(id, stream);
    this.#deadlines.set(id, this.#now + ANSWER_MS_MAX * this.#guard.degraded.timeouts);
    const { kind: name, ...value } = message;
    this.#say(stream, { name, correlation: id, value } as StreamEnvelope);
  }

  #answer({ answer, id }: Extract<ManagerEffect, { kind: "answer" }>): void {
    const asker = this.#askers.take(id);
    if (asker === undefined || asker.what === "copy") return;
    const { correlation, stream, what } = asker;
    if (answer.kind === "taken") {
      const { kind: _, ...taken } = answer;
      const value = { ...taken, level: this.#guard.backpressure };
      this.#say(stream, { name: "taken", correlation, value });
    } else if (answer.kind === "extended") {
      const { kind: _, ...value } = answer;
      this.#say(stream, { name: "extended", correlation, value });
    } else if (what === "client")
      this.#say(stream, { name: "clientAnswer", correlation, value: answer as ClientAnswer });
    else if (what === "gate") {
      const value = this.#withOverload(answer as GateAnswer);
      this.#say(stream, { name: "gateAnswer", correlation, value });
    } else if (answer.kind === "refused") this.#deny({ correlation, stream }, answer);
  }

  /** Adds the overload state of this process to an answer. */
  #withOverload(answer: GateAnswer): GateAnswer {
    if (answer.kind === "observed") return { ...answer, level: this.#guard.backpressure };
    if (answer.kind !== "capacity" || answer.health == null) return answer;
    const { health } = answer;
    const isOpen = this.pressure.state !== "overloaded" && this.#guard.degraded.takesWork;
    const accepting = health.accepting && isOpen;
    return { ...answer, health: { ...health, accepting } };
  }

  #deny(
    { correlation, stream }: Pick<RemoteAsker, "correlation" | "stream">,
    { address = null, message, reason, retryAfterMs = null }: Omit<Refusal, "kind">,
  ): void {
    const value = { reason, message, address, retryAfterMs };
    this.#say(stream, { name: "denial", correlation, value });
  }

  /** Sends a chunk from memory if the disk rejected the blob. */
  #sendPart(id: number, chunk: { readonly hash: BlobHash; readonly offset: number }): void {
    const unstored = this.#blobs.unstoredPart(chunk.hash, chunk.offset);
    if (unstored !== null) this.#onBlobPart({ kind: "blobPart", id, ...unstored });
    else this.#effects.push({ kind: "blobGet", id, ...chunk });
  }

  #onBlobPart({ bytes, id, total }: Extract<AboveInput, { kind: "blobPart" }>): void {
    const asker = this.#askers.take(id);
    if (asker === undefined) return;
    if (asker.what === "copy") {
      this.#blobs.onLocalPart(asker.request, bytes === null ? null : { total, bytes }, this.#now);
      return;
    }
    const { correlation, hash, stream } = asker;
    if (bytes !== null) {
      this.#say(stream, { name: "blobChunk", correlation, value: { total, bytes } });
      return;
    }
    this.#deny(asker, { reason: "unknownBlob", message: "it is not here" });
    // A worker will retry, so the blob is fetched. Another manager asked because it lacks the blob itself.
    if (hash !== undefined && this.#callers.get(stream)?.role === "worker")
      this.#blobs.onMissed(hash, this.#now);
  }

  #onBlobPut({ held, id, problem }: Extract<AboveInput, { kind: "blobPutDone" }>): void {
    const asker = this.#askers.take(id);
    if (asker === undefined) return;
    if (asker.what === "copy") {
      this.#blobs.onLocalPut(asker.request, problem === null ? held : null, this.#now);
      return;
    }
    const { correlation, stream } = asker;
    if (problem !== null) this.#deny(asker, { reason: "invalid", message: problem });
    else this.#say(stream, { name: "blobHeld", correlation, value: { bytes: held } });
  }

  #askPeer(peer: NodeId, message: StreamEnvelope): void {
    this.ledger.take({ kind: "askPeer", peer, message }, this.#now, this.#wall);
  }

  #say(stream: StreamId, message: StreamEnvelope): void {
    this.ledger.take({ kind: "say", stream, message }, this.#now, this.#wall);
  }
}
