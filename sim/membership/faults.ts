/** Carries out the faults of a plan on a cluster, and undoes them when their time is over. */

import { address, incarnation, nodeId } from "../../src/core/base/ids.ts";
import type { SwimDatagram, Update } from "../../src/core/membership/swim/messages.ts";
import { UPDATES_PER_PACKET_MAX } from "../../src/core/membership/swim/messages.ts";
import { NO_DISK_FAULTS } from "../kernel/disk.ts";
import { CALM_LINKS } from "../kernel/network.ts";
import type { Cluster } from "./cluster.ts";
import type { SimNode } from "./node.ts";
import { memberRecord, OPERATOR } from "./node.ts";
import type { Fault, SwarmPlan } from "./swarm.ts";

/** A few bogus names per packet keep it inside a datagram. */
const FLOOD_NAMES_PER_PACKET = 8;
const ROTATION_LOOK_MS = 500;

export class FaultDriver {
  readonly #cluster: Cluster;
  readonly #onWipe: (node: SimNode) => void;
  #broadcasts = 0;
  #floods = 0;
  /** Members that left and have not been started again. */
  readonly #leaving = new Set<SimNode>();
  healed = false;

  constructor(cluster: Cluster, onWipe: (node: SimNode) => void) {
    this.#cluster = cluster;
    this.#onWipe = onWipe;
  }

  /** Schedules all faults of the plan that `keep` names (all when null), then the healing. */
  schedule(plan: SwarmPlan, keep: ReadonlySet<number> | null): void {
    const { world, network, nodes } = this.#cluster;
    network.faults = plan.links;
    for (const node of nodes) node.disk.faults = plan.disk;
    plan.faults.forEach(({ at, fault }, index) => {
      if (keep !== null && !keep.has(index)) return;
      world.schedule(at, "fault", 0, () => {
        world.note(`fault ${index}: ${JSON.stringify(fault)}`);
        this.#inject(fault);
      });
    });
    world.schedule(plan.healAt, "fault", 0, () => this.#heal(plan));
  }

  /** Everybody up, every way open, disks sound; a light loss stays if there was any. */
  #heal(plan: SwarmPlan): void {
    const { world, network, nodes } = this.#cluster;
    world.note("healing");
    this.healed = true;
    network.mendAll();
    this.#cluster.names.mode = "whole";
    network.faults = { ...CALM_LINKS, loss: Math.min(plan.links.loss, 0.02) };
    for (const node of nodes) {
      node.disk.faults = NO_DISK_FAULTS;
      node.disk.cutNextSync = false;
      if (this.#leaving.has(node)) node.crash();
      if (node.state === "paused") node.resume();
      if (node.state === "down") node.start();
    }
    this.#leaving.clear();
  }

  #later(ms: number, run: () => void): void {
    const { world } = this.#cluster;
    world.schedule(world.now + ms, "fault", 0, () => {
      if (!this.healed) run();
    });
  }

  #node(index: number): SimNode {
    const { nodes } = this.#cluster;
    return nodes[index % nodes.length] as SimNode;
  }

  #inject(fault: Fault): void {
    switch (fault.kind) {
      case "crash":
        this.#crash(this.#node(fault.node), fault.forMs, fault.wipe);
        return;
      case "pause": {
        const node = this.#node(fault.node);
        node.pause();
        this.#later(fault.forMs, () => node.resume());
        return;
      }
      case "partition":
        this.#partition(fault);
        return;
      case "clog":
        this.#clog(fault);
        return;
      case "slow":
        this.#cluster.network.slow(fault.node, fault.delayMs);
        this.#later(fault.forMs, () => this.#cluster.network.slow(fault.node, 0));
        return;
      case "leave":
        this.#leave(this.#node(fault.node), fault.forMs);
        return;
      case "restartAll":
        this.#restartAll(fault.spreadMs);
        return;
      case "rot":
        this.#node(fault.node).disk.rot();
        return;
      case "wallJump":
        this.#node(fault.node).clock.jumpWall(fault.ms);
        return;
      case "leaderTrouble":
        this.#troubleLeader(fault);
        return;
      case "resign":
        this.#resign();
        return;
      case "powerCut":
        this.#cutPower(this.#node(fault.node), fault.forMs);
        return;
      case "rotateKeys":
        this.#rotateKeys(fault.spreadMs);
        return;
      case "names":
        this.#cluster.names.mode = fault.mode;
        this.#later(fault.forMs, () => {
          this.#cluster.names.mode = "whole";
        });
        return;
      default:
        this.#speak(fault);
    }
  }

  #rotateKeys(spreadMs: number): void {
    const { keys } = this.#cluster;
    if (keys.rotating) return;
    keys.begin();
    this.#reload(spreadMs, () => {
      keys.use();
      this.#reload(spreadMs, () => {
        keys.remove();
        this.#reload(spreadMs, () => {
          keys.rotating = false;
        });
      });
    });
  }

  /** All nodes reload the key file; `then` runs once all have. Nodes that start meanwhile read it themselves. */
  #reload(spreadMs: number, then: () => void): void {
    const { nodes, keys } = this.#cluster;
    const { ring } = keys;
    nodes.forEach((node, index) => {
      this.#later((spreadMs * ((index * 5) % nodes.length)) / nodes.length, () => {
        const { life } = node;
        node.inLife(life, false, () => node.push({ kind: "setKeys", ring, requester: OPERATOR }));
      });
    });
    const look = (): void => {
      const behind = nodes.some(({ process }) => process !== null && process.ring !== ring);
      if (behind) this.#later(ROTATION_LOOK_MS, look);
      else then();
    };
    this.#later(spreadMs, look);
  }

  /** Faults that are packets or commands rather than conditions. */
  #speak(
    fault: Extract<
      Fault,
      { kind: "strayPing" | "nameFlood" | "broadcast" | "staleEvidence" | "forceLeave" }
    >,
  ): void {
    switch (fault.kind) {
      case "strayPing": {
        const target = this.#node(fault.named).id;
        const message = { kind: "ping", sequence: 1_000_000, target } as const;
        this.#send(this.#node(fault.from), this.#node(fault.to), { message });
        return;
      }
      case "nameFlood":
        this.#flood(this.#node(fault.from), this.#node(fault.to), fault.count);
        return;
      case "broadcast": {
        const payload = Uint8Array.of(this.#broadcasts & 0xff, this.#broadcasts >> 8);
        this.#broadcasts++;
        const node = this.#node(fault.node);
        if (node.state === "up") node.push({ kind: "broadcast", payload });
        return;
      }
      case "staleEvidence":
        this.#evidence(this.#node(fault.from), this.#node(fault.to), this.#node(fault.about));
        return;
      case "forceLeave": {
        const node = this.#node(fault.node);
        const { id } = this.#node(fault.about);
        if (node.state === "up") node.push({ kind: "forceLeave", id, requester: OPERATOR });
      }
    }
  }

  #crash(node: SimNode, forMs: number, wipe: boolean): void {
    if (node.state === "down") return;
    node.crash();
    if (wipe) {
      node.wipe();
      this.#onWipe(node);
    }
    this.#later(forMs, () => {
      if (node.state === "down") node.start();
    });
  }

  #resign(): void {
    for (const node of this.#cluster.acting()) node.push({ kind: "resign" });
  }

  #cutPower(node: SimNode, forMs: number): void {
    if (node.state !== "up") return;
    node.disk.rot("vote");
    node.disk.cutNextSync = true;
    this.#resign();
    this.#later(forMs, () => {
      node.disk.cutNextSync = false;
      if (node.state === "down") node.start();
    });
  }

  #restartAll(spreadMs: number): void {
    const { nodes } = this.#cluster;
    nodes.forEach((node, index) => {
      node.crash();
      this.#later((spreadMs * ((index * 7) % nodes.length)) / nodes.length, () => {
        if (node.state === "down") node.start();
      });
    });
  }

  #leave(node: SimNode, forMs: number): void {
    if (node.state !== "up" || this.#leaving.has(node)) return;
    node.push({ kind: "leave", requester: OPERATOR });
    this.#leaving.add(node);
    this.#later(6_000, () => node.crash());
    this.#later(6_000 + forMs, () => {
      this.#leaving.delete(node);
      if (node.state === "down") node.start();
    });
  }

  #partition(fault: Extract<Fault, { kind: "partition" }>): void {
    const { network } = this.#cluster;
    const cut: [number, number][] = [];
    fault.groups.forEach((groupA, a) => {
      fault.groups.forEach((groupB, b) => {
        if (groupA === groupB || (fault.oneWay && groupA > groupB)) return;
        cut.push([a, b]);
      });
    });
    for (const [a, b] of cut) network.cut(a, b);
    this.#later(fault.forMs, () => {
      for (const [a, b] of cut) network.mend(a, b);
    });
  }

  #troubleLeader(fault: Extract<Fault, { kind: "leaderTrouble" }>): void {
    const { network, nodes, voters } = this.#cluster;
    const [leader] = this.#cluster.acting();
    if (leader === undefined || voters.length < 3) return;
    const others = nodes.filter((node) => voters.includes(node.id) && node !== leader);
    const lost = others.slice(0, Math.floor(others.length / 2));
    const [witness] = others.slice(lost.length);
    const a = leader.spec.index;
    for (const { spec } of lost) {
      network.cut(a, spec.index);
      network.cut(spec.index, a);
    }
    this.#later(fault.restartAfterMs, () => {
      if (witness === undefined || witness.state !== "up") return;
      witness.crash();
      this.#later(20, () => {
        if (witness.state === "down") witness.start();
      });
    });
    this.#later(fault.forMs, () => {
      for (const { spec } of lost) {
        network.mend(a, spec.index);
        network.mend(spec.index, a);
      }
    });
  }

  /** Swizzle: some nodes' ways are clogged one after the other and freed in another order. */
  #clog(fault: Extract<Fault, { kind: "clog" }>): void {
    const { world, network, nodes } = this.#cluster;
    fault.nodes.forEach((clogged, order) => {
      const until = world.now + fault.forMs * ((order * 7 + 3) % 5) * 0.25 + 500;
      for (let other = 0; other < nodes.length; other++) {
        network.clog(clogged, other, until);
        network.clog(other, clogged, until);
      }
    });
  }

  #send(
    from: SimNode,
    to: SimNode,
    parts: { readonly message?: SwimDatagram["message"]; readonly updates?: readonly Update[] },
  ): void {
    if (from.state !== "up" || from.swim === null || from === to) return;
    this.#cluster.insider.send(from.place, to.address, {
      from: from.id,
      fromAddress: from.address,
      incarnation: from.swim.incarnation,
      message: parts.message ?? { kind: "gossip" },
      coordinate: null,
      state: null,
      updates: parts.updates ?? [],
    });
  }

  #flood(from: SimNode, to: SimNode, count: number): void {
    let updates: Update[] = [];
    for (let i = 0; i < count; i++) {
      const serial = this.#floods++;
      const node = {
        ...memberRecord(serial, "worker"),
        id: nodeId(`bogus${serial}`),
        address: address(`10.9.${serial >> 8}.${serial & 0xff}:7946`),
      };
      updates.push({ kind: "join", node, incarnation: incarnation(1) });
      if (updates.length < Math.min(FLOOD_NAMES_PER_PACKET, UPDATES_PER_PACKET_MAX)) continue;
      this.#send(from, to, { updates });
      updates = [];
    }
  }

  /** Late or raised accusations, as gossip that went round for a while would bring them. */
  #evidence(from: SimNode, to: SimNode, about: SimNode): void {
    const view = from.swim?.look(about.id);
    if (view === null || view === undefined || about === from) return;
    const raise = this.#cluster.world.now % 2 < 1 ? 1 : -1;
    const stamp = incarnation(Math.max(0, view.incarnation + raise));
    const kind = this.#cluster.world.now % 3 < 1 ? "dead" : "suspect";
    const updates: Update[] = [{ kind, id: about.id, incarnation: stamp, from: from.id }];
    if (view.status !== "alive") {
      updates.push({ kind: "alive", node: view.record, incarnation: view.incarnation });
    }
    this.#send(from, to, { updates });
  }
}
