/**
 * The shards this node leads: keyed submissions are decided from the shard's state, proposals go
 * through the shard's group, and every job it has made exist is founded until that is confirmed.
 * (IDEM-20..24)
 */

import type { LogEntry } from "../group/messages.ts";
import { type IdempotencyKey, KEY_FORMAT_ERROR } from "../keys/key.ts";
import type { Moment } from "../keys/moment.ts";
import { encodeShardEntry, type ShardEntry } from "../keys/shard-entry.ts";
import type { ShardEffect } from "../keys/shard-waiters.ts";
import type { LedgerContext } from "./context.ts";
import { appliedOf, type Group } from "./group.ts";
import type { LedgerAnswer, PeerRequest } from "./messages.ts";
import type { Reply } from "./reply.ts";
import type { ShardApp } from "./shard-app.ts";
import { founding, keyed, refused } from "./submission.ts";

interface Services {
  answer(reply: Reply, answer: LedgerAnswer): void;
  route(reply: Reply, request: PeerRequest): void;
}

export class ShardService {
  readonly #context: LedgerContext;
  readonly #services: Services;
  #proposals = 0;

  constructor(context: LedgerContext, services: Services) {
    this.#context = context;
    this.#services = services;
  }

  #moment(app: ShardApp): Moment {
    const { now } = this.#context;
    return { now, time: app.timeAt(now) };
  }

  submit(
    group: Group,
    app: ShardApp,
    reply: Reply,
    request: Extract<PeerRequest, { kind: "submit" }>,
  ): void {
    if (!app.waiters.active) {
      this.#services.answer(reply, { kind: "redirect", primary: group.replica.state.primary });
      return;
    }
    const submission = keyed(request, this.#context);
    if (submission === null) {
      this.#services.answer(reply, refused("INVALID_KEY", KEY_FORMAT_ERROR));
    } else this.#carryOut(group, app.waiters.submit(submission, reply, this.#moment(app)));
  }

  onTookOver(group: Group, app: ShardApp): void {
    app.tookOver(this.#context.now);
    this.#carryOut(group, app.waiters.takeOver(this.#moment(app)));
  }

  onSteppedDown(group: Group, app: ShardApp): void {
    app.proposed.clear();
    if (app.waiters.active) this.#carryOut(group, app.waiters.stepDown());
  }

  onTick(group: Group, app: ShardApp): void {
    this.#carryOut(group, app.waiters.tick(this.#moment(app)));
  }

  /** The group has not taken a proposal: its key, or its cleanup, is free for the next. (IDEM-21) */
  onRefused(group: Group, app: ShardApp, eventId: string): void {
    const entry = app.proposed.get(eventId);
    if (entry === undefined) return;
    app.proposed.delete(eventId);
    if (app.waiters.active) this.#carryOut(group, app.waiters.refused(entry, this.#moment(app)));
  }

  onCommitted(group: Group, app: ShardApp, entry: LogEntry): void {
    const applied = app.apply(entry);
    if (applied === null) return;
    const { entry: shardEntry, outcome } = applied;
    this.#context.emit(appliedOf(group, entry, outcome.kind));
    this.#carryOut(group, app.waiters.applied(shardEntry, outcome, this.#moment(app)));
  }

  onFounded({ shard, key, jobId }: Extract<Reply, { kind: "shard" }>): void {
    const group = this.#context.groups.get(shard);
    if (group?.app.kind !== "shard" || !group.app.waiters.active) return;
    const { app } = group;
    this.#carryOut(group, app.waiters.founded(key as IdempotencyKey, jobId, this.#moment(app)));
  }

  #carryOut(group: Group, effects: readonly ShardEffect<Reply>[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case "propose":
          this.#propose(group, effect.entry);
          break;
        case "answer":
          this.#services.answer(effect.waiter, { kind: "submitted", answer: effect.answer });
          break;
        case "found": {
          const { key, jobId, replicaSet: members, created } = effect.founding;
          const request = founding(created, members);
          if (request === null) break;
          this.#services.route({ kind: "shard", shard: group.id, key, jobId }, request);
          break;
        }
        case "overdue": {
          const why = `job ${effect.founding.jobId} has no group after ${effect.ageMs} ms`;
          this.#context.emit({ kind: "alarm", group: group.id, why });
        }
      }
    }
  }

  #propose(group: Group, entry: ShardEntry): void {
    const { wallMs: wall, logical } = this.#context.hlc.tick(this.#context.wall);
    const { self, options } = this.#context;
    const eventId = `${self}/${options.boot}/${++this.#proposals}`;
    if (group.app.kind === "shard") group.app.proposed.set(eventId, entry);
    this.#context.propose(group, { eventId, wall, logical, data: encodeShardEntry(entry) });
  }
}
