/**
 * One replica of one group: Viewstamped Replication with durable promises, views owned by a function
 * of their number, adoption by last normal view, log transfer, leases as promises of a quorum, strong
 * reads, and reconfiguration one member at a time. Safety rests on the log alone: clocks, pauses and
 * leases decide only how soon somebody leads. (docs/internals/vsr.md)
 *
 *     normal ──grant or silence──► viewChange ──newView──► normal
 *        └── a reconfiguration without us ──► retired
 */

import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { checkVsrConfig, type VsrConfig } from "./config.ts";
import { type Standing, VsrContext } from "./context.ts";
import { giveUp, insist, onResign, resignWhenSettled } from "./hand-over.ts";
import type { GroupSnapshot, VsrMessage } from "./messages.ts";
import {
  advanceCommit,
  commitUpTo,
  flush,
  markCommit,
  onCommit,
  onPrepare,
  onPrepareResponse,
  onReplaced,
  propose,
  proposeReconfiguration,
  retire,
  stop,
} from "./normal.ts";
import { implausible } from "./plausibility.ts";
import { read } from "./reads.ts";
import type { VsrRules } from "./rules.ts";
import { VSR_RULES } from "./rules.ts";
import { answerPrimary, sendCommit } from "./send.ts";
import { fallAsleep, isLeftAlone, isLullaby, restWithPrimary, wake } from "./sleep.ts";
import type { ReplicaState } from "./state.ts";
import { freshState, recoveredState, withinTail } from "./state.ts";
import { takeOverWhenDurable } from "./take-over.ts";
import {
  fetchCommitted,
  onFetchLog,
  onLogSuffix,
  onNewView,
  onTransferTick,
  startInstall,
} from "./transfer.ts";
import type { GroupImage, VsrEffect, VsrInput, VsrView } from "./types.ts";
import {
  mayVote,
  onCandidacyTick,
  onGrants,
  onViewChange,
  onViewChangeResponse,
  probe,
} from "./views.ts";

export type Origin =
  /** The group is new, here and everywhere; its first replica leads view 1. (VSR-26) */
  | { readonly kind: "founded"; readonly members: readonly NodeId[] }
  /** We were made a replica of a group that others have been running. (VSR-27) */
  | { readonly kind: "invited"; readonly epoch: number; readonly members: readonly NodeId[] }
  | { readonly kind: "recovered"; readonly image: GroupImage };

interface ReplicaOptions {
  readonly self: NodeId;
  readonly config: VsrConfig;
  /** Default: no replica is passed over. */
  readonly standing?: Standing;
  /** Stays awake until sleeping is explicitly allowed. */
  readonly staysAwake?: boolean;
}

export class Replica {
  readonly #ctx: VsrContext;
  readonly #origin: Origin | null;

  constructor(
    options: ReplicaOptions,
    origin: Origin | ReplicaState,
    random: Random,
    rules: VsrRules = VSR_RULES,
  ) {
    const { self, config, standing, staysAwake = false } = options;
    checkVsrConfig(config);
    this.#origin = "kind" in origin ? origin : null;
    const state = "kind" in origin ? stateOf(origin) : origin;
    if (staysAwake) state.mayRest = false;
    this.#ctx = new VsrContext(self, state, config, random, rules, standing);
  }

  /** Plain data, for explorers and checkers; not to be changed. */
  get state(): ReplicaState {
    return this.#ctx.state;
  }

  /** To be called once, before anything else. */
  start(now: Millis): readonly VsrEffect[] {
    return this.#run(now, () => this.#begin());
  }

  step(input: VsrInput, now: Millis): readonly VsrEffect[] {
    if (this.#ctx.state.status === "broken") return [];
    return this.#run(now, () => this.#take(input));
  }

  nextDeadline(): Millis | null {
    const { state } = this.#ctx;
    if (state.status === "broken") return null;
    // Only a primary acts at these times; on a backup they would stay overdue for ever.
    const { heartbeatAt, noticeAt, giveUpBy } = state;
    let at = state.acting ? Math.min(heartbeatAt, noticeAt, giveUpBy) : state.electAt;
    const { candidacy, transfer } = state;
    if (candidacy !== null) at = Math.min(at, candidacy.deadline, candidacy.resendAt);
    if (transfer !== null) at = Math.min(at, transfer.retryAt);
    return at === Number.POSITIVE_INFINITY ? null : millis(at);
  }

  view(): VsrView {
    const { state, lastSeq } = this.#ctx;
    return {
      epoch: state.epoch,
      members: state.members,
      status: state.status,
      view: state.knownView,
      lastNormalView: state.lastNormalView,
      primary: state.acting,
      primaryId: state.primary,
      lastSeq,
      durableSeq: state.durableSeq,
      commit: state.commit,
      leaseUntil: state.acting && this.#ctx.config.leaseMs > 0 ? this.#ctx.leaseUntil() : null,
    };
  }

  /** Whether others would wait for this primary or candidate if it stopped without a resignation. */
  get isAwaited(): boolean {
    const { state } = this.#ctx;
    if (state.members.length === 1) return false;
    return state.takeOverAt > 0 || (state.acting && !isLeftAlone(this.#ctx));
  }

  /** How many more operations may be in flight. (VSR-33) */
  get room(): number {
    const { state, config, lastSeq } = this.#ctx;
    if (!state.acting || state.reconfigureSeq >= 0) return 0;
    if (state.giveUpBy < Number.POSITIVE_INFINITY) return 0;
    if (state.inFlightBytes >= config.windowBytes) return 0;
    return Math.max(0, config.windowEntries - (lastSeq - state.commit));
  }

  /** State of this group as written to a checkpoint. */
  image(): GroupImage {
    const { epoch, members, learner, knownView, lastNormalView, snapshot, entries, marked } =
      this.#ctx.state;
    const kept = this.#ctx.rules.checkpointKeepsPromise ? knownView : lastNormalView;
    const views = { epoch, members, learner, knownView: kept, lastNormalView };
    const { broken } = this.#ctx.state;
    return { ...views, snapshot, entries: [...entries], commitMark: marked, broken };
  }

  #run(now: Millis, work: () => void): readonly VsrEffect[] {
    const ctx = this.#ctx;
    ctx.now = now;
    ctx.out = [];
    work();
    resignWhenSettled(ctx);
    flush(ctx);
    return ctx.out;
  }

  #begin(): void {
    const ctx = this.#ctx;
    const { state, config } = ctx;
    const place = Math.max(0, state.members.indexOf(ctx.self));
    // A probe is harmless, so a restarted replica need not wait for a whole lease.
    state.electAt = ctx.now + (place + 1) * config.rankDelayMs;
    state.seenView = state.knownView;
    state.markedAt = ctx.now;
    const origin = this.#origin;
    if (origin === null) return;
    if (origin.kind === "recovered") {
      this.#resume(origin.image);
      return;
    }
    const epoch = origin.kind === "founded" ? 1 : origin.epoch;
    const learner = epoch > 1;
    state.learner = learner;
    ctx.persist({ kind: "epoch", epoch, members: state.members, learner });
    if (learner) return;
    state.knownView = 1;
    state.lastNormalView = 1;
    // Durable before the first message, or a restart would found the group a second time.
    if (ctx.owner(1) === ctx.self) {
      state.takeOverAt = state.appended;
      return;
    }
    // The log of view 1 begins empty, as ours is.
    state.status = "normal";
    state.primary = ctx.owner(1);
    state.durableView = 1;
    // Nothing was promised to a primary we never received from: no lease to wait for.
    state.electAt = ctx.now + 2 * config.renewMs + place * config.rankDelayMs;
  }

  #resume(image: GroupImage): void {
    const ctx = this.#ctx;
    const { state, config } = ctx;
    if (state.knownView !== state.lastNormalView) state.grantedTo = ctx.owner(state.knownView);
    if (image.snapshot !== null) ctx.emit({ kind: "restored", snapshot: image.snapshot });
    commitUpTo(ctx, image.commitMark, []);
    if (image.broken !== null) {
      state.status = "broken";
      ctx.emit({ kind: "broken", why: image.broken });
      return;
    }
    // Promises are not on disk: where reads rely on them, honour one that may have been given, perhaps in an epoch that
    // we no longer know. (VSR-23)
    if (config.leaseReads) state.promisedUntil = ctx.now + config.leaseMs;
    if (!state.members.includes(ctx.self)) {
      retire(ctx);
      return;
    }
    // Everything in the log is committed; any later request to the group wakes it.
    const isSettled = !state.learner && state.commit >= 0 && state.commit === ctx.lastSeq;
    if (isSettled && state.mayRest && config.idleMs < Number.POSITIVE_INFINITY) {
      state.asleep = true;
      state.electAt = Number.POSITIVE_INFINITY;
    }
    if (!ctx.rules.restartedNeedsNewView && ctx.owner(state.lastNormalView) === ctx.self) {
      state.takeOverAt = 0;
      state.status = "normal";
      state.acting = true;
      state.primary = ctx.self;
      state.durableSeq = ctx.lastSeq;
      state.durableView = state.lastNormalView;
      state.flushed = ctx.lastSeq;
      state.heartbeatAt = ctx.now;
      state.asleep = false;
    }
  }

  #take(input: VsrInput): void {
    const ctx = this.#ctx;
    switch (input.kind) {
      case "message":
        this.#onMessage(input.from, input.message);
        return;
      case "durable":
        this.#onDurable(input.count);
        return;
      case "tick":
        this.#onTick();
        return;
      case "propose":
        wake(ctx);
        propose(ctx, input.operations);
        return;
      case "read":
        wake(ctx);
        read(ctx, input.token);
        return;
      case "wake":
        wake(ctx);
        return;
      case "reconfigure":
        wake(ctx);
        proposeReconfiguration(ctx, input.eventId, input.members);
        return;
      case "compact":
        this.#compact(input.snapshot);
        return;
      case "mayRest":
        ctx.state.mayRest = true;
        return;
      case "mark":
        markCommit(ctx);
        return;
      case "giveUp":
        giveUp(ctx);
        return;
      case "stop":
        stop(ctx, input.why);
        return;
      default:
        assertNever(input);
    }
  }

  #onDurable(count: number): void {
    const ctx = this.#ctx;
    const { state } = ctx;
    state.durable = count;
    let settled = 0;
    for (const mark of state.marks) {
      if (mark.ticket > count) break;
      state.durableSeq = mark.seq;
      state.durableView = mark.view;
      settled++;
    }
    if (settled > 0) state.marks.splice(0, settled);
    let released = 0;
    for (const held of state.held) {
      if (held.ticket > count) break;
      ctx.send(held.to, held.message);
      released++;
    }
    if (released > 0) state.held.splice(0, released);
    if (state.acting) advanceCommit(ctx);
    else if (settled > 0 && state.status === "normal" && state.primary !== null) {
      answerPrimary(ctx, state.primary, "success");
    }
    takeOverWhenDurable(ctx);
    onGrants(ctx);
  }

  #onTick(): void {
    const ctx = this.#ctx;
    const { state, now } = { state: ctx.state, now: ctx.now };
    const isDue = now >= state.heartbeatAt || now >= state.noticeAt;
    if (state.acting && isDue && !fallAsleep(ctx)) sendCommit(ctx);
    const { candidacy, transfer } = state;
    if (candidacy !== null) onCandidacyTick(ctx, candidacy);
    if (transfer !== null) onTransferTick(ctx, transfer);
    if (now < state.electAt) return;
    if (state.acting || state.candidacy !== null) state.electAt = Number.POSITIVE_INFINITY;
    else if (state.leaving) insist(ctx);
    else probe(ctx);
  }

  /** The log below the snapshot goes, but for a tail that spares slow replicas a snapshot. (VSR-31) */
  #compact(snapshot: GroupSnapshot): void {
    const { state, config } = this.#ctx;
    if (snapshot.seq > state.commit || snapshot.seq <= (state.snapshot?.seq ?? -1)) return;
    state.snapshot = snapshot;
    const first = Math.max(state.firstSeq, snapshot.seq + 1 - config.tailEntries);
    const kept = withinTail(state.entries.slice(first - state.firstSeq), snapshot.seq);
    state.firstSeq += state.entries.length - kept.length;
    state.entries = kept;
  }

  #onMessage(from: NodeId, message: VsrMessage): void {
    const ctx = this.#ctx;
    const why = implausible(ctx, message);
    if (why !== null) {
      ctx.emit({ kind: "implausible", from, why });
      return;
    }
    if (!isLullaby(ctx, message)) wake(ctx);
    if (!this.#epochFits(from, message)) return;
    const { state } = ctx;
    switch (message.kind) {
      case "prepare":
      case "commit":
      case "newView":
        this.#onPrimary(from, message);
        return;
      case "prepareResponse":
        onPrepareResponse(ctx, from, message);
        return;
      case "viewChange":
        if (ctx.mayOwn(message.view, from) && state.members.includes(from)) {
          onViewChange(ctx, from, message);
        }
        return;
      case "viewChangeResponse":
        onViewChangeResponse(ctx, from, message);
        return;
      case "fetchLog":
        onFetchLog(ctx, from, message);
        return;
      case "logSuffix":
        onLogSuffix(ctx, from, message);
        return;
      case "unknownGroup":
        if (state.acting || state.candidacy !== null) this.#invite(from);
        return;
      case "resign":
        onResign(ctx, from, message);
        return;
      case "found":
      case "newerEpoch":
        return;
      default:
        assertNever(message);
    }
  }

  #invite(to: NodeId): void {
    const { epoch, members } = this.#ctx.state;
    if (!members.includes(to)) return;
    this.#ctx.sendDurably(to, { kind: "found", epoch, members });
  }

  /** A message of a primary: follow it, or answer that its view is over. (VSR-8) */
  #onPrimary(
    from: NodeId,
    message: Extract<VsrMessage, { kind: "prepare" | "commit" | "newView" }>,
  ): void {
    const ctx = this.#ctx;
    const { state } = ctx;
    const { view, kind } = message;
    if (!ctx.mayOwn(view, from) || from === ctx.self || state.status === "retired") return;
    if (view < state.knownView) {
      const left = view === state.lastNormalView && kind === "prepare";
      if (left && !ctx.rules.leftViewNotAcked) this.#ackLeftView(from, message);
      else answerPrimary(ctx, from, "staleView");
      return;
    }
    if (kind === "newView") {
      onNewView(ctx, from, message);
      return;
    }
    const lives = view === state.lastNormalView && state.status === "normal";
    if (!lives || state.knownView !== view || state.acting) {
      if (ctx.rules.joinByInstall) {
        startInstall(ctx, from, view, message.epoch);
        return;
      }
      this.#joinUnprepared(from, view);
    }
    if (kind === "prepare") onPrepare(ctx, from, message);
    else {
      onCommit(ctx, from, message);
      restWithPrimary(ctx, message);
    }
  }

  /** The mutant of `leftViewNotAcked`: keeps acking for the primary it has left. */
  #ackLeftView(
    to: NodeId,
    { view, epoch, entries }: Extract<VsrMessage, { kind: "prepare" }>,
  ): void {
    const ctx = this.#ctx;
    for (const entry of entries) if (entry.seq === ctx.lastSeq + 1) ctx.append(entry, true);
    const acked = ctx.lastSeq;
    const echo = { expected: acked + 1, acked, sentAt: -1, round: 0 };
    ctx.sendDurably(to, { kind: "prepareResponse", epoch, status: "success", view, ...echo });
  }

  /** The mutant of `joinByInstall`: enters a view without its log. (S-12) */
  #joinUnprepared(from: NodeId, view: number): void {
    const { state } = this.#ctx;
    state.acting = false;
    state.status = "normal";
    state.knownView = view;
    state.lastNormalView = view;
    state.durableView = view;
    state.primary = from;
  }

  /** Messages of another epoch are refused, or lead to the newer log. (VSR-27) */
  #epochFits(from: NodeId, message: VsrMessage): boolean {
    const ctx = this.#ctx;
    const { state } = ctx;
    const { epoch, kind } = message;
    if (epoch === state.epoch || !ctx.rules.epochChecked) return true;
    if (kind === "fetchLog") return epoch < state.epoch;
    if (kind === "logSuffix") return epoch > state.epoch;
    if (epoch < state.epoch) {
      if (kind === "viewChange" || kind === "prepare" || kind === "commit" || kind === "newView") {
        const { members } = state;
        ctx.sendDurably(from, { kind: "newerEpoch", epoch: state.epoch, members });
      }
      return false;
    }
    if (kind === "newerEpoch" && !message.members.includes(ctx.self)) {
      onReplaced(ctx, from, message);
      return false;
    }
    if (kind === "prepare" || kind === "commit" || kind === "newView") {
      startInstall(ctx, from, message.view, epoch);
    } else if (kind === "newerEpoch" || kind === "viewChange") fetchCommitted(ctx, from);
    return false;
  }

  /** Whether this replica votes in elections. */
  get votes(): boolean {
    return mayVote(this.#ctx);
  }
}

function stateOf(origin: Origin): ReplicaState {
  switch (origin.kind) {
    case "founded":
      return freshState(1, origin.members);
    case "invited":
      return freshState(origin.epoch, origin.members);
    case "recovered":
      return recoveredState(origin.image);
    default:
      return assertNever(origin);
  }
}
