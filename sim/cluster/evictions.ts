/**
 * Workers given up by managers because their load stands still, checked against what each manager logged before.
 *
 *   P5   no worker is given up while more than half of those known to its manager stand still at once, and none
 *        whose cores advance
 */

import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { TiersPlan } from "./swarm.ts";
import type { SimWorker } from "./worker.ts";

/** Below this number, failures count as independent. */
const MANY_MIN = 3;
/** Minimum wait for a worker, plus the delay of its reports. */
const WAITED_MS = 30_000;
const HEARD_MS = 2_000;

type Said = Extract<ProcessEffect, { kind: "log" }>;

export class Evictions {
  readonly marks = new Set<string>();
  readonly #world: World;
  readonly #violations: Violations;
  readonly #workers: () => readonly SimWorker[];
  /** Only cores stand still in this seed: a worker given up without that is healthy. */
  readonly #isCalm: boolean;
  /** By manager: the workers it knows, and whether it logged that they stand still. */
  readonly #heard = new Map<string, Map<string, boolean>>();

  constructor(
    world: World,
    violations: Violations,
    plan: TiersPlan,
    workers: () => readonly SimWorker[],
  ) {
    this.#world = world;
    this.#violations = violations;
    this.#workers = workers;
    this.#isCalm = plan.scope === "frozen" || plan.scope === "pressure";
  }

  /** `manager`: one process of it, which knows no worker at its start. */
  onSaid(manager: string, { event, fields }: Said): void {
    const worker = String(fields.worker ?? "");
    const heard = this.#heard.get(manager) ?? new Map<string, boolean>();
    this.#heard.set(manager, heard);
    if (event === "worker.heard") heard.set(worker, false);
    else if (event === "worker.lost") heard.delete(worker);
    else if (event === "worker.progress") heard.set(worker, fields.to === "stuck");
    else if (event === "worker.evicted") this.#onEvicted(manager, worker, heard);
    if (/^worker\.(evicted|held|extended|extensionDenied)$/.test(event)) this.marks.add(event);
  }

  #onEvicted(manager: string, worker: string, heard: Map<string, boolean>): void {
    const failing = [...heard.values()].filter((isStuck) => isStuck).length;
    const isMany = heard.size >= MANY_MIN && failing * 2 > heard.size;
    this.#violations.check(!isMany, "P5", () => {
      return `${manager} gives up ${worker} while ${failing} of ${heard.size} stand still`;
    });
    heard.delete(worker);
    this.#checkFrozen(manager, worker);
  }

  #checkFrozen(manager: string, name: string): void {
    const worker = this.#workers().find((one) => one.name === name);
    if (worker === undefined || !this.#isCalm) return;
    const { now } = this.#world;
    const { from, until } = worker.frozen;
    const isFrozen = now - from >= WAITED_MS - HEARD_MS && until >= now - HEARD_MS;
    this.#violations.check(isFrozen, "P5", () => {
      return `${manager} gives up ${name}, whose cores stood still from ${from} to ${until} ms`;
    });
  }
}
