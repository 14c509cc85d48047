/**
 * Members that are known but were never reached. They are greeted with extra pings so that first contact takes seconds.
 * They are never accused; if nothing ever answers they are dropped by the rules of their role, without being declared
 * dead. Configured peers only cause a warning. (AD-29, AD-35)
 */

import type { Role } from "../../base/ids.ts";
import { LOAD_MULTIPLIER_MAX } from "../vivaldi/quality.ts";
import type { SwimContext } from "./context.ts";
import { GREETINGS_PER_INTERVAL_MAX, GREETINGS_PER_INTERVAL_MIN } from "./limits.ts";
import type { Member } from "./member-table.ts";
import { isLive } from "./member-table.ts";
import type { Membership } from "./membership.ts";
import type { Prober } from "./prober.ts";
import type { Syncer } from "./syncer.ts";

interface ConfirmationStrategy {
  readonly passiveMs: number;
  /** Confirmation pings after the passive wait; workers get none, ever. */
  readonly attempts: number;
}

const CONFIRMATION_STRATEGIES: Readonly<Record<Role, ConfirmationStrategy>> = {
  gate: { passiveMs: 120_000, attempts: 5 },
  manager: { passiveMs: 90_000, attempts: 3 },
  worker: { passiveMs: 180_000, attempts: 0 },
};

const CONFIRMATION_ATTEMPT_MS = 5_000;
const UNCONFIRMED_WARNING_MS = 60_000;

export class Confirmer {
  readonly #context: SwimContext;
  readonly #membership: Membership;
  readonly #prober: Prober;
  readonly #syncer: Syncer;

  constructor(context: SwimContext, membership: Membership, prober: Prober, syncer: Syncer) {
    this.#context = context;
    this.#membership = membership;
    this.#prober = prober;
    this.#syncer = syncer;
  }

  /** Once per probe interval. */
  beat(): void {
    const { table } = this.#context;
    if (table.unconfirmedCount === 0) return;
    const strangers = [...table.all()].filter((member) => !member.confirmed);
    const share = Math.ceil(strangers.length / 8);
    const count = Math.min(GREETINGS_PER_INTERVAL_MAX, Math.max(GREETINGS_PER_INTERVAL_MIN, share));
    const waiting = strangers.filter((member) => isLive(member) && this.#greets(member));
    // Members greeted least go first, so that each has a turn.
    waiting.sort((a, b) => a.greetings - b.greetings);
    for (const member of waiting.slice(0, count)) this.#prober.greet(member);
    for (const member of strangers) this.#age(member);
  }

  /** Remaining passive wait, and time until the next attempt; null if no attempt is left. */
  waits(member: Member): { readonly passiveMs: number; readonly attemptMs: number | null } {
    const { now } = this.#context;
    const passiveMs = Math.max(0, member.learnedAt + this.#passiveMs(member) - now);
    const { attempts } = CONFIRMATION_STRATEGIES[member.record.role];
    const isAsked = !member.confirmed && member.confirmAttempts < attempts;
    return { passiveMs, attemptMs: isAsked ? Math.max(passiveMs, member.confirmAt - now) : null };
  }

  /** In the passive wait everyone is greeted; after it only by counted attempts. */
  #greets(member: Member): boolean {
    return this.#context.now - member.learnedAt < this.#passiveMs(member);
  }

  #passiveMs(member: Member): number {
    const { role } = member.record;
    const load = Math.min(LOAD_MULTIPLIER_MAX[role], this.#context.awareness.load);
    return CONFIRMATION_STRATEGIES[role].passiveMs * load;
  }

  #age(member: Member): void {
    const { now } = this.#context;
    const ageMs = now - member.learnedAt;
    if (ageMs >= UNCONFIRMED_WARNING_MS && !member.warned) {
      member.warned = true;
      this.#context.warn("UNCONFIRMED_PEER", member.id);
    }
    if (this.#greets(member) || this.#syncer.isSeed(member.record.address)) return;
    const { attempts, passiveMs } = CONFIRMATION_STRATEGIES[member.record.role];
    if (member.confirmAttempts < attempts) {
      if (now < member.confirmAt) return;
      member.confirmAttempts++;
      this.#context.peers.attempts[member.record.role]++;
      member.confirmAt = now + CONFIRMATION_ATTEMPT_MS;
      this.#prober.greet(member);
      return;
    }
    if (attempts > 0 && now < member.confirmAt) return;
    this.#context.warn("UNCONFIRMED_REMOVED", member.id);
    this.#context.peers.removed[member.record.role]++;
    this.#membership.forget(member, "never reached", 2 * passiveMs);
  }
}
