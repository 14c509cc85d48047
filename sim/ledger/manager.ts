/**
 * A manager that obeys the leader of a job: it learns of each leader with its fence token, late and out of order, keeps
 * the highest per job and rejects lower ones. (VSR-32) I7: no two leaders have the same token.
 */

import type { Random } from "../../src/core/base/random.ts";
import type { GroupId } from "../../src/core/ledger/group/messages.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { LedgerProcess } from "./node.ts";

const DELAY_MS_MAX = 4_000;

interface Obeyed {
  readonly token: number;
  readonly leader: string;
}

export class FakeManager {
  readonly #world: World;
  readonly #violations: Violations;
  readonly #random: Random;
  readonly #obeyed = new Map<GroupId, Obeyed>();
  refused = 0;

  constructor(world: World, violations: Violations, random: Random) {
    this.#world = world;
    this.#violations = violations;
    this.#random = random;
  }

  onLead({ id, life }: LedgerProcess, group: GroupId, token: number): void {
    const leader = `${id}/${life}`;
    const world = this.#world;
    world.schedule(world.now + this.#random.float() * DELAY_MS_MAX, "check", 0, () => {
      this.#receive(group, { token, leader });
    });
  }

  #receive(group: GroupId, command: Obeyed): void {
    const known = this.#obeyed.get(group);
    if (known !== undefined && command.token < known.token) {
      this.refused++;
      return;
    }
    const rival =
      known !== undefined && command.token === known.token && command.leader !== known.leader;
    this.#violations.check(!rival, "I7", () => {
      return `${command.leader} and ${known?.leader} command ${group} with token ${command.token}`;
    });
    this.#obeyed.set(group, command);
  }
}
