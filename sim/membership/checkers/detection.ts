/**
 * How members may accuse each other and declare each other dead:
 *
 *   P1  a failed probe has asked helpers, if there were any
 *   P2  only pings that name us are answered
 *   P3  a round trip is measured only from the ping it answers
 *   P4  a process that stalled judges no member by what it missed
 *   P5  a suspicion lasts as long as its distinct accusers allow
 */

import type { NodeId } from "../../../src/core/base/ids.ts";
import type { SwimConfig } from "../../../src/core/membership/swim/config.ts";
import { suspicionBounds, suspicionTimeout } from "../../../src/core/membership/swim/suspicion.ts";
import type { SwimEffect, SwimInput } from "../../../src/core/membership/swim/types.ts";
import type { World } from "../../kernel/world.ts";
import type { SimNode } from "../node.ts";
import type { Violations } from "./violations.ts";

interface Accusation {
  readonly since: number;
  readonly liveCount: number;
  readonly accusers: Set<NodeId>;
}

interface Watch {
  life: number;
  readonly accusations: Map<NodeId, Accusation>;
  /** Target of the last probe round, its sequence, and whether helpers were asked. */
  probe: {
    readonly target: NodeId;
    readonly sequence: number;
    readonly at: number;
    helped: boolean;
  } | null;
  readonly rtts: Map<NodeId, number | null>;
  /** First contacts: pings to members that were not confirmed then. */
  readonly greetings: Map<number, NodeId>;
  readonly confirmedAt: Map<NodeId, number>;
  /** After the last step: within one, members may come and go around a suspicion. */
  liveCount: number;
}

const GREETINGS_KEPT = 512;

export class DetectionChecker {
  readonly #world: World;
  readonly #violations: Violations;
  readonly #config: SwimConfig;
  readonly #watches = new Map<NodeId, Watch>();

  constructor(world: World, violations: Violations, config: SwimConfig) {
    this.#world = world;
    this.#violations = violations;
    this.#config = config;
  }

  onSwim(node: SimNode, input: SwimInput, effects: readonly SwimEffect[]): void {
    const watch = this.#watch(node);
    this.#collectAccusers(node, watch, input);
    const relaying = input.kind === "datagram" && input.packet.message.kind === "pingRequest";
    for (const effect of effects) {
      if (effect.kind === "send") this.#onSend(node, watch, input, effect, relaying);
      else if (effect.kind === "memberChanged") this.#onChange(node, watch, effect.change);
    }
    if (input.kind === "datagram") this.#afterAck(node, watch, input);
    watch.liveCount = node.swim?.liveCount ?? 1;
  }

  #watch(node: SimNode): Watch {
    const known = this.#watches.get(node.id);
    if (known !== undefined && known.life === node.life) return known;
    const fresh: Watch = {
      life: node.life,
      accusations: new Map(),
      probe: null,
      rtts: new Map(),
      greetings: new Map(),
      confirmedAt: new Map(),
      liveCount: 1,
    };
    this.#watches.set(node.id, fresh);
    return fresh;
  }

  #collectAccusers(node: SimNode, watch: Watch, input: SwimInput): void {
    if (watch.accusations.size === 0) return;
    if (input.kind === "datagram") {
      for (const update of input.packet.updates) {
        if (update.kind !== "suspect" || update.id === node.id) continue;
        watch.accusations.get(update.id)?.accusers.add(update.from);
      }
    } else if (input.kind === "streamRequest" || input.kind === "streamReply") {
      const { message, from } = input.packet;
      if (message.kind !== "sync" && message.kind !== "syncReply") return;
      for (const line of message.members) {
        if (line.status === "suspect" || line.status === "dead") {
          watch.accusations.get(line.node.id)?.accusers.add(from);
        }
      }
    }
  }

  #onSend(
    node: SimNode,
    watch: Watch,
    input: SwimInput,
    effect: Extract<SwimEffect, { kind: "send" }>,
    relaying: boolean,
  ): void {
    const { message } = effect.packet;
    if (message.kind === "ping") {
      const { target, sequence } = message;
      const confirmed = node.swim?.peek(target)?.confirmed ?? false;
      if (!confirmed) this.#rememberGreeting(watch, sequence, target);
      else if (!relaying) watch.probe = { target, sequence, at: node.local, helped: false };
    } else if (message.kind === "pingRequest" && watch.probe?.target === message.target) {
      watch.probe.helped = true;
    } else if (message.kind === "ack" && !message.relayed && input.kind === "datagram") {
      const asked = input.packet.message;
      const named = asked.kind !== "ping" || asked.target === node.id;
      if (!named) this.#violations.report("P2", `${node.id} answered for another`);
    }
  }

  #rememberGreeting(watch: Watch, sequence: number, target: NodeId): void {
    watch.greetings.set(sequence, target);
    for (const oldest of watch.greetings.keys()) {
      if (watch.greetings.size <= GREETINGS_KEPT) break;
      watch.greetings.delete(oldest);
    }
  }

  #onChange(
    node: SimNode,
    watch: Watch,
    change: Extract<SwimEffect, { kind: "memberChanged" }>["change"],
  ): void {
    const { id } = change.member;
    const liveCount = Math.min(watch.liveCount, node.swim?.liveCount ?? 1);
    if (change.kind === "confirmed") watch.confirmedAt.set(id, node.local);
    if (change.kind === "suspect") {
      const own = change.why === "probe failed";
      const accuser = own ? node.id : (change.why.slice(3) as NodeId);
      watch.accusations.set(id, {
        since: node.local,
        liveCount,
        accusers: new Set([accuser]),
      });
      if (own) {
        this.#checkHelped(node, watch, id);
        this.#checkAwake(node, `suspects ${id}`);
      }
      return;
    }
    if (change.kind === "failed" && change.why === "suspicion expired") {
      this.#checkAwake(node, `buries ${id}`);
      this.#checkWaited(node, watch, id);
    }
    watch.accusations.delete(id);
  }

  #checkHelped(node: SimNode, watch: Watch, id: NodeId): void {
    const { probe } = watch;
    if (probe === null || probe.target !== id || probe.helped) return;
    const since = probe.at;
    // Every member that was alive and confirmed all the while could have helped.
    const helpers = (node.swim?.snapshot().members ?? []).filter((member) => {
      const known = member.status === "alive" && member.changedAt < since;
      return member.id !== id && known && (watch.confirmedAt.get(member.id) ?? since) < since;
    });
    if (!(helpers.length === 0))
      this.#violations.report(
        "P1",
        `${node.id} suspects ${id} alone, with ${helpers.length} possible helpers`,
      );
  }

  /** Long enough a pause must be noticed; then nothing is judged for half a probe timeout. */
  #checkAwake(node: SimNode, what: string): void {
    const { probeTimeoutMs } = this.#config;
    const pauseMs = node.resumedAt - node.pausedAt;
    const awakeMs = this.#world.now - node.resumedAt;
    if (!(pauseMs < 2 * probeTimeoutMs || awakeMs > probeTimeoutMs / 2))
      this.#violations.report(
        "P4",
        `${node.id} ${what} ${awakeMs} ms after a pause of ${pauseMs} ms`,
      );
  }

  #checkWaited(node: SimNode, watch: Watch, id: NodeId): void {
    const accusation = watch.accusations.get(id);
    if (accusation === undefined) return;
    const waited = node.local - accusation.since;
    // We may have confirmed it ourselves; and members may have come or gone, which moves the minimum.
    const accusers = new Set(accusation.accusers).add(node.id);
    const count = Math.min(accusation.liveCount, (node.swim?.liveCount ?? 1) + 1);
    // One less as well: somebody may have been confirmed later in the very step that suspected.
    const due = Math.min(
      this.#dueMs(Math.max(1, count), accusers.size - 1),
      this.#dueMs(Math.max(1, count - 1), accusers.size - 1),
    );
    if (!(waited >= due * 0.7 - 1))
      this.#violations.report(
        "P5",
        `${node.id} buried ${id} after ${waited} ms of ${due} (${accusers.size} accusers)`,
      );
  }

  #dueMs(count: number, confirmations: number): number {
    const bounds = suspicionBounds(this.#config, count);
    return suspicionTimeout(Math.min(confirmations, bounds.confirmationsWanted), bounds);
  }

  #afterAck(node: SimNode, watch: Watch, input: Extract<SwimInput, { kind: "datagram" }>): void {
    const { message, from } = input.packet;
    if (message.kind !== "ack") return;
    const rttMs = node.swim?.peek(from)?.rttMs ?? null;
    const last = watch.rtts.get(from) ?? null;
    watch.rtts.set(from, rttMs);
    if (rttMs === last || message.relayed) return;
    const { probe } = watch;
    const greeted = watch.greetings.get(message.sequence) === from;
    const current = greeted || (probe?.target === from && probe.sequence === message.sequence);
    if (!current)
      this.#violations.report("P3", `${node.id} measured ${from} by an ack of ${message.sequence}`);
  }
}
