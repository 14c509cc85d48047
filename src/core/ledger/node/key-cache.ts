/**
 * Keyed submissions on their way in: duplicates of a pending one wait for its answer, and recent decisions are answered
 * from memory. A cache only: the shard decides. (IDEM-9..15)
 */

import { GateCache, type GateCacheStats, type GateEffect } from "../keys/gate-cache.ts";
import { type IdempotencyKey, parseKey } from "../keys/key.ts";
import { gateConfig } from "./config.ts";
import type { LedgerContext } from "./context.ts";
import type { LedgerAnswer, LedgerRequest } from "./messages.ts";
import type { Reply } from "./reply.ts";
import { fingerprint } from "./submission.ts";

type SubmitRequest = Extract<LedgerRequest, { kind: "submit" }>;
type KeyCacheReply = Extract<Reply, { kind: "keyCache" }>;

export class KeyCache {
  readonly #context: LedgerContext;
  readonly #cache: GateCache<number>;
  readonly #route: (reply: Reply, request: SubmitRequest) => void;

  constructor(context: LedgerContext, route: (reply: Reply, request: SubmitRequest) => void) {
    this.#context = context;
    this.#route = route;
    const { config, rules } = context.options;
    this.#cache = new GateCache(gateConfig(config), rules.idempotency);
  }

  get stats(): GateCacheStats {
    return this.#cache.stats();
  }

  nextDeadline(): number | null {
    return this.#cache.nextDeadline();
  }

  submit(token: number, request: SubmitRequest): void {
    const parsed = parseKey(request.key);
    if (parsed.kind !== "key") return;
    const { key } = parsed;
    const effects = this.#cache.check(
      key,
      fingerprint(request, this.#context),
      token,
      this.#context.now,
    );
    for (const effect of effects) {
      if (effect.kind === "forward") {
        this.#route({ kind: "keyCache", key, token: effect.token }, request);
      } else this.#answer(effect);
    }
  }

  onAnswer({ key, token }: KeyCacheReply, answer: LedgerAnswer): void {
    const { now } = this.#context;
    const effects =
      answer.kind === "submitted"
        ? this.#cache.settle(key as IdempotencyKey, token, answer.answer, now)
        : this.#cache.fail(
            key as IdempotencyKey,
            token,
            "why" in answer ? answer.why : answer.kind,
          );
    for (const effect of effects) this.#answer(effect);
  }

  onTick(): void {
    for (const effect of this.#cache.tick(this.#context.now)) this.#answer(effect);
  }

  #answer(effect: GateEffect<number>): void {
    if (effect.kind !== "answer") return;
    const answer = { kind: "submitted", answer: effect.answer } as const;
    this.#context.emit({ kind: "answer", token: effect.waiter, answer });
  }
}
