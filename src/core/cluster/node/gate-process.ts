/**
 * A gate process as one state machine: the ledger node that replicates between gates, the gate itself, its
 * clients, and its links to the managers of every datacenter.
 *
 *   bytes ─▶ LedgerMachine ─┬─ leads, applied, answers ─▶ Gate ─┬─▶ requests ─▶ LedgerMachine
 *                           └─ called: clients ─────────▶   │   ├─▶ answers ─▶ say ─▶ bytes
 *   bytes of datacenters ─▶ ClientProcess, one for each ────┘   └─▶ ask ─▶ ClientProcess ─▶ bytes
 */

import { ADMISSION_LIMITS } from "../../../wire/admission.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { Address } from "../../base/ids.ts";
import type { FileEffect } from "../../ledger/log/files.ts";
import type { GateEffect, GateInput, ManagerAnswer, ManagerMessage } from "../gate/types.ts";
import type { LinkEffect, LinkInput, StreamId } from "../link/types.ts";
import { type PressureView, RequestGuard } from "../overload/request-guard.ts";
import { PRESSURE_RULES, type PressureRules } from "../overload/rules.ts";
import type { AboveEffect, AboveInput } from "./above.ts";
import { Askers, type CodeFrom } from "./askers.ts";
import type { ClientEffect, ClientProcess } from "./client-process.ts";
import type { LedgerMachine } from "./ledger-machine.ts";
import { type Steered, steeringOf } from "./steering.ts";
import type { ProcessEffect, ProcessInput } from "./types.ts";

/** Interval at which an overloaded gate processes its deadlines, in batches. */
const OVERLOADED_TICK_MS = 100;

/** The gate itself, a pure state machine on top of the ledger. */
interface GateMachine {
  step(input: GateInput, now: Millis, wall: number): readonly GateEffect[];
  nextDeadline(): Millis | null;
  /** Address of a gate that would accept a client refused here; null if none is known. */
  elsewhere(): string | null;
}

/** Links to the managers of one datacenter. */
export interface DatacenterLinks {
  readonly name: string;
  readonly managers: readonly { readonly name: string; readonly address: Address }[];
  readonly client: ClientProcess;
}

export type GateProcessInput =
  | ProcessInput
  | AboveInput
  | { readonly kind: "ofDatacenter"; readonly datacenter: string; readonly input: LinkInput }
  | Extract<GateInput, { kind: "report" }>;

export type GateProcessEffect =
  | ProcessEffect
  | AboveEffect
  | Steered
  | { readonly kind: "toDatacenter"; readonly datacenter: string; readonly effect: LinkEffect }
  | Extract<GateEffect, { kind: "report" }>;

interface GateSelf {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly codeFrom?: CodeFrom;
}

/** Destination of an answer. */
interface Asker {
  readonly stream: StreamId;
  readonly correlation: number;
}

export class GateProcess {
  readonly ledger: LedgerMachine;
  readonly #name: string;
  /** Addresses of all gates. */
  readonly #addresses: readonly string[];
  readonly #gate: GateMachine;
  readonly #datacenters: ReadonlyMap<string, DatacenterLinks>;
  readonly #guard: RequestGuard;
  readonly #askers: Askers<Asker>;
  /** Chunks read by the gate itself: the id used by the gate, by the id of the read. */
  readonly #reading = new Map<number, number>();
  #inputs: GateInput[] = [];
  #effects: GateProcessEffect[] = [];
  #isStarted = false;
  #now = 0 as Millis;
  #wall = 0;

  constructor(
    { addresses, codeFrom, name }: GateSelf,
    ledger: LedgerMachine,
    gate: GateMachine,
    datacenters: readonly DatacenterLinks[],
    rules: PressureRules = PRESSURE_RULES,
  ) {
    this.#guard = new RequestGuard(ADMISSION_LIMITS.gate, {}, rules);
    this.#askers = new Askers<Asker>(this.#guard, codeFrom);
    this.#name = name;
    this.#addresses = addresses;
    this.ledger = ledger;
    this.#gate = gate;
    this.#datacenters = new Map(datacenters.map((one) => [one.name, one]));
  }

  get wantsTurn(): boolean {
    return this.ledger.wantsTurn;
  }

  take(input: GateProcessInput, now: Millis, wall: number): void {
    this.#now = now;
    this.#wall = wall;
    this.#askers.at(now);
    switch (input.kind) {
      case "pressure":
        this.#effects.push(...this.#guard.sample(input, now, this.ledger.undurable.delayMs(now)));
        this.#inputs.push({
          ...{ kind: "pressed", level: this.#guard.backpressure },
          state: this.#guard.view(now).state,
        });
        return;
      case "blobsHeld":
      case "blobsGone":
      case "blobRead":
      case "report":
        this.#inputs.push(input);
        return;
      case "blobNotKept":
        // The result is fetched again on the next request for it.
        return;
      case "blobPart":
        this.#onBlobPart(input);
        return;
      case "blobPutDone":
        this.#onBlobPut(input);
        return;
      case "ofDatacenter":
        this.#stepLinks(input.datacenter, input.input);
        return;
      case "tick":
        for (const name of this.#datacenters.keys()) this.#stepLinks(name, { kind: "tick" });
        this.#inputs.push({ kind: "tick" });
        this.ledger.take(input, now, wall);
        return;
      default:
        this.ledger.take(input, now, wall);
    }
  }

  flush(): readonly GateProcessEffect[] {
    for (;;) {
      for (const effect of this.ledger.flush()) this.#onLedger(effect);
      if (this.#inputs.length === 0) break;
      const inputs = this.#inputs;
      this.#inputs = [];
      for (const input of inputs)
        for (const effect of this.#gate.step(input, this.#now, this.#wall)) this.#perform(effect);
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
    const links = [...this.#datacenters.values()].map(
      ({ client }) => client.nextDeadline() ?? never,
    );
    const at = Math.min(
      this.ledger.nextDeadline() ?? never,
      this.#isStarted ? this.#gateDeadline() : never,
      ...links,
    );
    return at === never ? null : (at as Millis);
  }

  #gateDeadline(): number {
    const at = this.#gate.nextDeadline() ?? Number.POSITIVE_INFINITY;
    if (this.#guard.backpressure === 0) return at;
    return Math.ceil(at / OVERLOADED_TICK_MS) * OVERLOADED_TICK_MS;
  }

  #onLedger(effect: ProcessEffect): void {
    switch (effect.kind) {
      case "answer":
        // Tokens of the gate are negative; others belong to callers of the node itself.
        if (effect.token >= 0) break;
        this.#inputs.push({ kind: "ledger", token: -effect.token, answer: effect.answer });
        return;
      case "leads": {
        const { group, leads, view } = effect;
        this.#inputs.push({ kind: "leads", group, view, leads });
        break;
      }
      case "applied":
        this.#inputs.push({ kind: "applied", group: effect.group });
        break;
      case "peer":
      case "peerDrains":
      case "diskProblem":
      case "peerHealth":
        this.#inputs.push(effect);
        break;
      case "serving":
        // Nothing is dialled before the disk is read.
        this.#isStarted = true;
        for (const name of this.#datacenters.keys()) this.#stepLinks(name, { kind: "start" });
        this.#inputs.push({ kind: "tick" });
        break;
      case "called":
        this.#onCalled(effect);
        return;
      case "callerGone":
        this.#askers.forget(effect.stream);
        return;
      default:
    }
    this.#effects.push(effect);
  }

  #onCalled(called: Extract<ProcessEffect, { kind: "called" }>): void {
    const { message, stream } = called;
    const { correlation } = message;
    switch (message.name) {
      case "clientOpening":
        this.#say(stream, {
          name: "opened",
          correlation,
          value: { manager: this.#name, addresses: this.#addresses },
        });
        return;
      case "clientRequest": {
        const id = this.#askers.admit({ stream, correlation }, called);
        if (typeof id !== "number") {
          // New jobs may go to a healthy gate; requests about existing jobs may only be known here.
          const isNew = message.value.kind === "submit";
          const value = isNew ? { ...id, address: this.#gate.elsewhere() } : id;
          this.#say(stream, { name: "clientAnswer", correlation, value });
        }
        const begun = this.#askers.begun(id);
        if (begun !== null)
          this.#inputs.push({ kind: "client", id: begun, request: message.value });
        if (typeof id === "number") this.#effects.push(...steeringOf(called));
        return;
      }
      case "blobPut": {
        const id = this.#askers.admit({ stream, correlation }, called);
        if (typeof id === "number") this.#effects.push({ kind: "blobPut", id, ...message.value });
        else this.#say(stream, { name: "denial", correlation, value: id });
        return;
      }
      default:
    }
  }

  #perform(effect: GateEffect): void {
    switch (effect.kind) {
      case "ledger": {
        const { request, token } = effect;
        this.ledger.take({ kind: "request", token: -token, request }, this.#now, this.#wall);
        return;
      }
      case "ask":
        this.#askManager(effect);
        return;
      case "answer": {
        const asker = this.#askers.take(effect.id);
        if (asker === undefined) return;
        const { correlation, stream } = asker;
        this.#say(stream, { name: "clientAnswer", correlation, value: effect.answer });
        return;
      }
      case "readPart": {
        const id = this.#askers.nextId();
        this.#reading.set(id, effect.id);
        const { hash, offset } = effect;
        this.#effects.push({ kind: "blobGet", id, hash, offset });
        return;
      }
      case "giveUp":
      case "tellPeers":
      case "passOver":
        this.ledger.take(effect, this.#now, this.#wall);
        return;
      case "keepBlob":
      case "readBlob":
      case "report":
      case "log":
        this.#effects.push(effect);
        return;
      default:
        assertNever(effect);
    }
  }

  #askManager({
    datacenter,
    id,
    manager,
    message,
    timeoutMs,
  }: Extract<GateEffect, { kind: "ask" }>): void {
    const links = this.#datacenters.get(datacenter);
    const to = links?.managers.find(({ name }) => name === manager)?.address;
    if (to === undefined) {
      this.#inputs.push({ kind: "answered", id, answer: null });
      return;
    }
    this.#stepLinks(datacenter, {
      ...{ kind: "ask", id, to, message: envelopeOf(message) },
      timeoutMs: timeoutMs * this.#guard.degraded.timeouts,
    });
  }

  #stepLinks(datacenter: string, input: Parameters<ClientProcess["step"]>[0]): void {
    const links = this.#datacenters.get(datacenter);
    for (const effect of links?.client.step(input, this.#now) ?? [])
      this.#onLinks(datacenter, effect);
  }

  #onLinks(datacenter: string, effect: ClientEffect): void {
    switch (effect.kind) {
      case "answered": {
        const { answer, id } = effect;
        this.#inputs.push({
          kind: "answered",
          id,
          answer: answer === null ? null : answerOf(answer),
        });
        return;
      }
      case "link": {
        const { manager: address, up } = effect;
        const known = this.#datacenters.get(datacenter)?.managers ?? [];
        const manager = known.find((one) => one.address === address)?.name;
        if (manager !== undefined) this.#inputs.push({ kind: "link", datacenter, manager, up });
        return;
      }
      default:
        this.#effects.push({ kind: "toDatacenter", datacenter, effect });
    }
  }

  #onBlobPart({ bytes, id, total }: Extract<AboveInput, { kind: "blobPart" }>): void {
    const own = this.#reading.get(id);
    this.#reading.delete(id);
    if (own !== undefined) this.#inputs.push({ kind: "partRead", id: own, total, bytes });
  }

  #onBlobPut({ held, id, problem }: Extract<AboveInput, { kind: "blobPutDone" }>): void {
    const asker = this.#askers.take(id);
    if (asker === undefined) return;
    const { correlation, stream } = asker;
    if (problem === null)
      this.#say(stream, { name: "blobHeld", correlation, value: { bytes: held } });
    else
      this.#say(stream, {
        ...{ name: "denial", correlation, value: { reason: "invalid", message: problem } },
      });
  }

  #say(stream: StreamId, message: StreamEnvelope): void {
    this.ledger.take({ kind: "say", stream, message }, this.#now, this.#wall);
  }
}

function envelopeOf(message: ManagerMessage): StreamEnvelope {
  const correlation = 0;
  switch (message.kind) {
    case "client":
      return { name: "clientRequest", correlation, value: message.request };
    case "gate":
      return { name: "gateRequest", correlation, value: message.request };
    case "blobPut":
      return { name: "blobPut", correlation, value: message };
    case "blobGet":
      return { name: "blobGet", correlation, value: message };
    default:
      return assertNever(message);
  }
}

/** Null for messages that are not an answer from a manager. */
function answerOf(message: StreamEnvelope): ManagerAnswer | null {
  switch (message.name) {
    case "clientAnswer":
    case "gateAnswer":
      return message.value;
    case "blobHeld":
      return { kind: "blobHeld", ...message.value };
    case "blobChunk":
      return { kind: "blobChunk", ...message.value };
    case "denial":
      return { kind: "refused", ...message.value };
    default:
      return null;
  }
}
