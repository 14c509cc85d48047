/**
 * Membership's invariants, checked after every step of every node:
 *
 *   M1  own incarnation never falls, also across restarts      M2  stored incarnations never fall
 *   M3  dead to alive only by a higher incarnation             M6  everything bounded stays in its bound
 *   C2  only confirmed members are accused                     C6  no death without a suspicion or a `dead`
 *   R1  an accusation about us is answered above it            R2  evidence about others is kept
 *   R3  a higher alive clears a suspicion                      R4  a refutation is sent
 *   F1  a farewell is final                                    S1  embedded states arrive in order
 *   U1  user gossip arrives at most once
 *
 * M4 (no healthy member dies) and M5 (views agree after healing) are checked by the run, which knows the injected
 * faults.
 */

import type { NodeId } from "../../../src/core/base/ids.ts";
import type { Update } from "../../../src/core/membership/swim/messages.ts";
import type { SwimSizes } from "../../../src/core/membership/swim/swim.ts";
import type {
  MemberChange,
  SwimEffect,
  SwimInput,
} from "../../../src/core/membership/swim/types.ts";
import type { SimNode } from "../node.ts";
import type { Violations } from "./violations.ts";

/** Observed history of one process. */
interface Observer {
  life: number;
  incarnation: number;
  readonly seen: Map<NodeId, { incarnation: number; status: string }>;
  readonly states: Map<NodeId, { boot: number; version: number }>;
  readonly userEvents: Set<string>;
  leaving: boolean;
  /** Incarnation of its farewell. */
  farewell: number;
  /** A refutation that has not been sent to anyone yet, and how many packets left without it. */
  unsent: { readonly incarnation: number; packets: number } | null;
}

const UNTOLD_PACKETS_MAX = 40;

interface MembershipCaps {
  readonly unconfirmed: number;
  readonly queue: number;
  readonly relays: number;
  readonly greetings: number;
  readonly exchanges: number;
}

export class MembershipChecker {
  readonly #violations: Violations;
  readonly #caps: MembershipCaps;
  readonly #observers = new Map<NodeId, Observer>();
  /** The highest incarnation each member ever announced. */
  readonly #announced = new Map<NodeId, number>();

  constructor(violations: Violations, caps: MembershipCaps) {
    this.#violations = violations;
    this.#caps = caps;
  }

  /** A wiped disk cannot remember: M1's guarantee starts over. */
  onWipe(node: SimNode): void {
    this.#announced.delete(node.id);
  }

  onSwimDone(node: SimNode, effect: SwimEffect): void {
    if (effect.kind !== "send" && effect.kind !== "openStream" && effect.kind !== "answerStream") {
      return;
    }
    const { packet } = effect;
    const announced = this.#announced.get(node.id) ?? 0;
    if (packet.incarnation > announced) this.#announced.set(node.id, packet.incarnation);
    if (effect.kind === "send") this.#checkOwnUpdates(node, packet.updates);
  }

  onSwim(node: SimNode, input: SwimInput, effects: readonly SwimEffect[]): void {
    const { swim } = node;
    if (swim === null) return;
    const observer = this.#observer(node);
    const { incarnation } = swim;
    if (!(incarnation >= observer.incarnation))
      this.#violations.report(
        "M1",
        `${node.id} fell from ${observer.incarnation} to ${incarnation}`,
      );
    const rose = incarnation > observer.incarnation;
    observer.incarnation = incarnation;
    if (input.kind === "leave" && !observer.leaving) {
      observer.leaving = true;
      observer.farewell = incarnation;
    }
    for (const effect of effects) this.#onEffect(node, observer, input, effect);
    if (input.kind === "datagram") {
      const { updates } = input.packet;
      for (const update of updates) this.#onUpdate(node, observer, update, updates);
      for (const update of updates)
        if (update.kind !== "user") this.#refresh(node, observer, update);
      if (rose) observer.unsent = { incarnation, packets: 0 };
    }
    if (input.kind === "streamRequest" || input.kind === "streamReply") {
      for (const id of observer.seen.keys()) this.#refreshOne(node, observer, id);
    }
    this.#checkSizes(node, swim.sizes());
  }

  #refresh(node: SimNode, observer: Observer, update: Exclude<Update, { kind: "user" }>): void {
    const about = update.kind === "join" || update.kind === "alive" ? update.node.id : update.id;
    this.#refreshOne(node, observer, about);
  }

  /** Incarnations also rise without an event; what was stored before the next step must be known. */
  #refreshOne(node: SimNode, observer: Observer, id: NodeId): void {
    const view = node.swim?.peek(id);
    const last = observer.seen.get(id);
    if (view === undefined || last === undefined) return;
    if (!(view.incarnation >= last.incarnation))
      this.#violations.report(
        "M2",
        `${node.id} holds ${id}@${view.incarnation} after ${last.incarnation}`,
      );
    last.incarnation = view.incarnation;
  }

  #observer(node: SimNode): Observer {
    const known = this.#observers.get(node.id);
    if (known !== undefined && known.life === node.life) return known;
    const announced = this.#announced.get(node.id) ?? 0;
    const incarnation = node.swim?.incarnation ?? 0;
    if (!(incarnation > announced))
      this.#violations.report(
        "M1",
        `${node.id} starts at ${incarnation} after having announced ${announced}`,
      );
    const fresh: Observer = {
      life: node.life,
      incarnation,
      seen: new Map(),
      states: new Map(),
      userEvents: new Set(),
      leaving: false,
      farewell: 0,
      unsent: null,
    };
    this.#observers.set(node.id, fresh);
    return fresh;
  }

  #onEffect(node: SimNode, observer: Observer, input: SwimInput, effect: SwimEffect): void {
    if (effect.kind === "memberChanged") {
      this.#onChange(node, observer, input, effect.change);
    } else if (effect.kind === "peerState") {
      const { id, boot, version } = effect;
      const last = observer.states.get(id) ?? { boot: 0, version: 0 };
      const newer = boot > last.boot || (boot === last.boot && version > last.version);
      if (!newer) this.#violations.report("S1", `${node.id} took ${id}'s state ${boot}/${version}`);
      observer.states.set(id, { boot, version });
    } else if (effect.kind === "userEvent") {
      const key = `${effect.origin}/${effect.payload.join(",")}`;
      const fresh = !observer.userEvents.has(key);
      if (!fresh) this.#violations.report("U1", `${node.id} got ${key} again`);
      observer.userEvents.add(key);
    }
  }

  #onChange(node: SimNode, observer: Observer, input: SwimInput, change: MemberChange): void {
    const { member, kind, from } = change;
    const { id, incarnation, status } = member;
    const last = observer.seen.get(id);
    const say = (what: string) => () =>
      `${node.id} ${kind} ${id}@${incarnation} (${what}; was ${last?.status}@${last?.incarnation})`;
    if (last !== undefined && kind !== "forget") {
      this.#violations.check(incarnation >= last.incarnation, "M2", say("fell"));
    }
    if (kind === "join" && (from === "dead" || from === "left")) {
      this.#violations.check(incarnation > (last?.incarnation ?? 0), "M3", say("not above"));
    }
    if (kind === "join") this.#violations.check(from !== "alive", "M3", say("joined twice"));
    if (kind === "refute") this.#violations.check(status === "alive", "R3", say("not cleared"));
    if (kind === "suspect") this.#violations.check(member.confirmed, "C2", say("unconfirmed"));
    if (kind === "failed") {
      const accused = from === "suspect" || input.kind === "datagram";
      this.#violations.check(accused && member.confirmed, "C6", say("without suspicion"));
    }
    if (kind === "forget") observer.seen.delete(id);
    else observer.seen.set(id, { incarnation, status });
  }

  #onUpdate(node: SimNode, observer: Observer, update: Update, packet: readonly Update[]): void {
    const { swim } = node;
    if (swim === null || update.kind === "user") return;
    if (update.kind === "join" || update.kind === "alive") {
      const view = swim.peek(update.node.id);
      if (view === undefined || view.record.address !== update.node.address) return;
      const accusedAgain = packet.some((other) => other.kind === "suspect" && other.id === view.id);
      if (accusedAgain || view.incarnation !== update.incarnation) return;
      if (!(view.status !== "suspect" || !this.#isNews(observer, update)))
        this.#violations.report(
          "R3",
          `${node.id} still suspects ${view.id} after alive@${update.incarnation}`,
        );
      return;
    }
    if (update.id === node.id) {
      this.#onAccused(node, observer, update.incarnation);
      return;
    }
    const view = swim.peek(update.id);
    if (view === undefined || !view.confirmed || update.from === update.id) return;
    if (!(view.incarnation >= update.incarnation))
      this.#violations.report(
        "R2",
        `${node.id} holds ${update.id}@${view.incarnation} against ${update.kind}@${update.incarnation}`,
      );
  }

  /** The alive update was above what this observer last knew. */
  #isNews(observer: Observer, update: Extract<Update, { kind: "join" | "alive" }>): boolean {
    const last = observer.seen.get(update.node.id);
    return last !== undefined && update.incarnation > last.incarnation;
  }

  #onAccused(node: SimNode, observer: Observer, accusation: number): void {
    const incarnation = node.swim?.incarnation ?? 0;
    if (observer.leaving) return;
    if (!(incarnation > accusation))
      this.#violations.report("R1", `${node.id}@${incarnation} does not refute ${accusation}`);
  }

  /** F1 and R4: our packets' claims about ourselves. */
  #checkOwnUpdates(node: SimNode, updates: readonly Update[]): void {
    const observer = this.#observers.get(node.id);
    if (observer === undefined || observer.life !== node.life) return;
    for (const update of updates) {
      const alive =
        (update.kind === "alive" || update.kind === "join") && update.node.id === node.id;
      if (!alive) continue;
      // News waiting for the disk since before the farewell has at most the farewell's number, and loses to it.
      if (observer.leaving && update.incarnation > observer.farewell)
        this.#violations.report("F1", `${node.id} returns while leaving`);
      if (observer.unsent !== null && update.incarnation >= observer.unsent.incarnation) {
        observer.unsent = null;
      }
    }
    if (observer.unsent === null || observer.leaving) return;
    observer.unsent.packets++;
    const { packets } = observer.unsent;
    if (!(packets <= UNTOLD_PACKETS_MAX))
      this.#violations.report("R4", `${node.id} refutes in silence`);
  }

  #checkSizes(node: SimNode, sizes: SwimSizes): void {
    const caps = this.#caps;
    const held =
      sizes.unconfirmed <= caps.unconfirmed &&
      sizes.queue <= caps.queue &&
      sizes.relays <= caps.relays &&
      sizes.greetings <= caps.greetings &&
      sizes.exchanges <= caps.exchanges;
    if (!held) this.#violations.report("M6", `${node.id} ${JSON.stringify(sizes)}`);
  }
}
