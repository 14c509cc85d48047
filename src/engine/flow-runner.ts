/**
 * Runs the iterations of a `flow(…)`: its body is a function, and every call made through `step` is reported to the
 * user's `Iteration`. An iteration ends when its body and every call that it began have ended, and has exactly one
 * outcome.
 *
 *   begin ──▶ body under way ──▶ returned or threw ──▶ calls nobody awaited ──▶ done
 */

import type { Duration } from "../core/base/duration.ts";
import { Random } from "../core/base/random.ts";
import { clock } from "../protocols/call.ts";
import { endWhenAsked } from "../protocols/failed-content.ts";
import { setImmediate } from "../protocols/net/timers.ts";
import type { CallRecord, CallResult, PreparedCall } from "../protocols/protocol.ts";
import type { UserInfo } from "../workflow/context.ts";
import { isPreparedCall } from "../workflow/definition.ts";
import type { FlowStepOptions, PollOptions } from "../workflow/flow-context.ts";
import type { FlowPart } from "../workflow/flow-part.ts";
import { millisecondsOf, misused } from "./flow-arguments.ts";
import type { CallOwner, FlowCall } from "./flow-call.ts";
import { FlowCalls } from "./flow-calls.ts";
import { FlowGroup, innermost, type Place } from "./flow-group.ts";
import { FlowScope, type ScopeOwner } from "./flow-scope.ts";
import { IterationEnd } from "./iteration-end.ts";
import type { CutOff, Outcome } from "./outcome.ts";
import { BodyListener, REFUSALS_MAX, refusal } from "./refusal.ts";
import type { Runner, RunnerHost, RunnerUser } from "./runner.ts";
import type { SessionListener, UserSession } from "./session.ts";
import type { TimeLimit } from "./time-limit.ts";

const NO_ROWS = Object.freeze({});
const NO_OPTIONS: FlowStepOptions = Object.freeze({});
const DEFAULT_POLL_EVERY_MS = 1_000;
const DEFAULT_POLL_WITHIN_MS = 30_000;
const PLAN_OVER = "the plan is over";

export class FlowRunner implements Runner, CallOwner, ScopeOwner, SessionListener {
  readonly context: Runner["context"] = { data: NO_ROWS, iteration: 0, limit: null };
  readonly session: UserSession;
  state: unknown = undefined;
  readonly #user: RunnerUser;
  readonly #host: RunnerHost;
  readonly #flow: FlowPart;
  readonly #calls: FlowCalls;
  #random: Random | undefined;
  #info: UserInfo | undefined;
  /** Incremented with every iteration that begins or is cut off: scopes of earlier ones are refused. */
  #iteration = 0;
  #root: Place = { group: null, open: [] };
  #bodyDone = true;
  /** Reason for the iteration to stop. */
  #end: IterationEnd | null = null;
  #outcome: Outcome = "completed";
  #setUpFailed = false;
  /** Declared pauses under way. */
  #resting = 0;
  /** Listener of the body under way; shared by all of them until one is abandoned. */
  #listener = this.#newListener();

  constructor(user: RunnerUser, flow: FlowPart) {
    this.#user = user;
    this.#calls = new FlowCalls(this);
    this.#host = user.host;
    this.session = user.session;
    user.session.listener = this;
    this.#flow = flow;
  }

  get data(): Readonly<Record<string, unknown>> {
    return this.context.data;
  }
  get setup(): unknown {
    return this.#host.setup;
  }
  get signal(): AbortSignal {
    return this.context.limit?.signal ?? this.#host.signal;
  }
  get abort(): (reason: string) => void {
    return this.#host.abort;
  }
  get user(): UserInfo {
    const { iteration } = this.context;
    if (this.#info?.iteration !== iteration)
      this.#info = { id: this.#user.id, iteration, core: this.#host.core };
    return this.#info;
  }

  async setUp(): Promise<void> {
    const { userSetup } = this.#flow;
    if (userSetup === undefined) return;
    this.#setUpFailed = true;
    this.state = await userSetup(this.#aside("userSetup"));
    this.#setUpFailed = false;
  }

  async tearDown(): Promise<void> {
    await this.#flow.userTeardown?.(this.#aside("userTeardown"));
  }

  /** Runs setup or teardown once for all users, with a user without iterations. */
  beside(what: "setup" | "teardown", limit: TimeLimit): unknown {
    this.context.limit = limit;
    return this.#flow[what]?.(this.#aside(what));
  }

  /** Context of a function outside the iterations: its calls are measured apart. */
  #aside(phase: string): FlowScope {
    this.#end = null;
    return new FlowScope(this, ++this.#iteration, { group: null, open: [] }, phase);
  }

  begin(): void {
    this.#iteration++;
    this.#end = null;
    this.#bodyDone = false;
    if (this.#root.open.length > 0) this.#root = { group: null, open: [] };
    if (this.#setUpFailed) {
      // In a turn of its own: a loop that fails at once must not block everything else.
      setImmediate(() => this.#bodyEnded("failed"));
      return;
    }
    const scope = new FlowScope(this, this.#iteration, this.#root, null);
    const { returned, threw } = this.#listener;
    try {
      Promise.resolve(this.#flow.body(scope)).then(returned, threw);
    } catch (error) {
      Promise.reject(error).then(null, threw);
    }
  }

  /** Returns why a call may not begin; null when it may. */
  #refusalOf(scope: FlowScope, name: string): IterationEnd | null {
    if (scope.iteration !== this.#iteration) {
      this.#host.findings.note(
        `"${name}" was reached when its iteration was over, and did not begin`,
      );
      return new IterationEnd("interrupted", "it was over before this step was reached");
    }
    if (this.#end !== null) return this.#end;
    if (this.#host.stopping && scope.phase === null && this.#flow.finish !== "iteration")
      this.#end = new IterationEnd("interrupted", PLAN_OVER);
    return this.#end;
  }

  /** A body that goes on after this many refusals would never end: abandon it and end its iteration. */
  #refuse(scope: FlowScope, name: string, end: IterationEnd): Promise<never> {
    if (++scope.refusals <= REFUSALS_MAX) return refusal(end);
    if (scope.iteration === this.#iteration && scope.phase === null) {
      this.#host.findings.note(
        `"${name}" was tried ${REFUSALS_MAX} times when its iteration was over: a loop catches the ` +
          "error that says so; throw it on",
      );
      this.#listener.leaveBehind();
      this.#listener = this.#newListener();
      this.#bodyEnded(end.outcome);
    }
    return new Promise(() => {});
  }

  /** Throws, on a later turn, when the iteration may not go on. */
  #admit(scope: FlowScope, name: string): Promise<never> | undefined {
    const refusal = this.#refusalOf(scope, name);
    return refusal === null ? undefined : this.#refuse(scope, name, refusal);
  }

  #newListener(): BodyListener {
    return new BodyListener(
      () => this.#bodyEnded(this.#end?.outcome ?? "completed"),
      (error) => this.#bodyEnded(this.#outcomeOf(error)),
    );
  }

  step(scope: FlowScope, first: unknown, second: unknown, third: unknown): Promise<CallResult> {
    const named = typeof first === "string";
    const given = named ? second : first;
    const options = ((named ? third : second) ?? NO_OPTIONS) as FlowStepOptions;
    const isCode = named && typeof given === "function";
    if (!isCode && !isPreparedCall(given)) throw new TypeError(misused(first, given));
    const name = named
      ? first
      : ((given as PreparedCall).title ?? (given as PreparedCall).protocol);
    const refused = this.#admit(scope, name);
    if (refused !== undefined) return refused;
    const call = this.#newCall(
      scope,
      name,
      named,
      isCode ? "custom" : (given as PreparedCall).protocol,
      options,
    );
    try {
      if (isCode) return call.startCode(given as () => unknown, call.startedAt);
      const answer = this.#observed(call, given as PreparedCall);
      return answer === null
        ? call.start(given as PreparedCall, call.startedAt)
        : call.startAnswered(answer);
    } catch (error) {
      // A call that cannot begin must not be awaited: the mistake is the body's.
      this.#forget(call, true);
      throw error;
    }
  }

  /** Asks the observer for an answer instead of the network. */
  #observed(call: FlowCall, described: PreparedCall): CallResult | null {
    const { observer } = this.#host;
    if (observer === null) return null;
    call.described = described;
    return observer.answer(call.name, described);
  }

  #newCall(
    scope: FlowScope,
    name: string,
    isNamed: boolean,
    protocol: string,
    options: FlowStepOptions,
  ): FlowCall {
    const steps = this.#host.flowSteps;
    const call = this.#calls.take();
    const now = clock();
    call.name = name;
    call.phase = scope.phase;
    call.aside = scope.phase !== null;
    call.startedAt = now;
    call.required = options.required ?? this.#flow.required;
    call.step =
      scope.phase === null
        ? steps.number(name, protocol, options.tags, isNamed)
        : steps.asideNumber(name, protocol, scope.phase, isNamed);
    call.dueAt = call.aside ? now : this.#user.iteration.dueOf(now);
    const place = scope.place.open.length === 0 ? scope.place : this.#placeOf(scope.place);
    call.group = place.group;
    call.group?.callBegan();
    return call;
  }

  #placeOf(place: Place): Place {
    const found = innermost(place);
    if (found !== null) return found;
    this.#host.findings.note(
      "groups were open side by side, and a step inside could belong to either: use the step that " +
        'each body is given, group("name", async ({ step }) => …); such calls are counted in no group',
    );
    return place;
  }

  callEnded(call: FlowCall, record: CallRecord, result: CallResult): void {
    const { iteration } = this.#user;
    const failed = record.errorKind !== null;
    this.#host.observer?.called(call.name, call.phase, call.described, result);
    if (call.aside) iteration.aside(call.step, record);
    else {
      iteration.answered(record.endedAt);
      iteration.call(
        call.step,
        failed ? result : record,
        call.startedAt,
        call.dueAt,
        record.endedAt,
      );
    }
    if (!failed) {
      this.#forget(call, false);
      call.resolve(result);
    } else this.#failed(call, result);
    if (this.#bodyDone && this.#calls.none && !call.aside) this.#done(record.endedAt);
  }

  /** Records a message that no step waited for: it was due when it says that it was sent. */
  unasked(name: string, result: CallResult): void {
    const { endedAt, protocol, startedAt } = result;
    this.#host.observer?.called(name, null, null, result);
    const step = this.#host.flowSteps.number(name, protocol, undefined);
    const dueAt = Number.isNaN(startedAt) ? endedAt : startedAt;
    this.#user.iteration.call(step, result, dueAt, dueAt, endedAt);
  }

  #failed(call: FlowCall, result: CallResult): void {
    const { name, required } = call;
    const began = this.#iteration;
    this.#forget(call, true);
    endWhenAsked(result, () => this.#endBecause(began, name));
    if (required) call.reject(this.#endBecause(began, name));
    else call.resolve(result);
  }

  #endBecause(iteration: number, by: string): IterationEnd {
    if (iteration !== this.#iteration) return new IterationEnd("ended", by);
    this.#end ??= new IterationEnd("ended", by);
    return this.#end;
  }

  /** Code of a step rethrew the end of the iteration, or threw something that is no result of any code. */
  codeThrew(call: FlowCall, error: Error): void {
    this.#forget(call, true);
    call.reject(error);
    if (this.#bodyDone && this.#calls.none && !call.aside) this.#done(clock());
  }

  #forget(call: FlowCall, failed: boolean): void {
    this.#calls.giveBack(call);
    if (call.group !== null) this.#endIn(call.group, failed);
  }

  /** Separate, because the closure made here slows down every caller that may make it. */
  #endIn(group: FlowGroup, failed: boolean): void {
    group.callEnded(failed, (over) => this.#close(over));
  }

  check(scope: FlowScope, name: string, test: () => unknown): boolean {
    if (typeof test !== "function")
      throw new TypeError(`check("${name}", …) needs a function that returns true or false`);
    const { iteration } = this.#user;
    let passed = false;
    try {
      passed = this.#host.findings.checked(name, test());
    } catch (error) {
      // The content of a failed call was read: that failure is counted already.
      if (error instanceof IterationEnd) throw error;
    }
    this.#host.observer?.checked(name, passed);
    if (scope.iteration === this.#iteration && scope.phase === null)
      iteration.check(this.#host.recorder.checkNumber(name), passed);
    return passed;
  }

  async group(
    scope: FlowScope,
    name: string,
    body: (context: FlowScope) => unknown,
  ): Promise<unknown> {
    const refused = this.#admit(scope, name);
    if (refused !== undefined) await refused;
    const group = this.#open(scope, name);
    try {
      const value = body(new FlowScope(this, scope.iteration, group, scope.phase));
      group.starting = false;
      return await value;
    } catch (error) {
      if (error instanceof IterationEnd && error.outcome === "interrupted")
        group.interrupted = true;
      else group.failed = true;
      throw error;
    } finally {
      group.starting = false;
      group.bodyDone = true;
      group.leave();
      if (group.over) this.#close(group);
    }
  }

  #open(scope: FlowScope, name: string): FlowGroup {
    const parent = this.#placeOf(scope.place);
    const path = parent.group === null ? name : `${parent.group.path}/${name}`;
    const beganAt = clock();
    const dueAt = this.#user.iteration.dueOf(beganAt);
    const number = this.#host.recorder.groupNumber(path);
    return new FlowGroup({ path, parent, number, dueAt, beganAt });
  }

  #close(group: FlowGroup): void {
    const { iteration } = this.#user;
    const now = clock();
    if (group.interrupted) return;
    iteration.group(group.number, group.failed, group, now, group.paused.upTo(now));
  }

  poll(
    scope: FlowScope,
    name: string,
    call: () => PreparedCall,
    options: PollOptions<CallResult>,
  ): Promise<CallResult | undefined> {
    const everyMs = millisecondsOf(options.every ?? DEFAULT_POLL_EVERY_MS, "every");
    const withinMs = millisecondsOf(options.within ?? DEFAULT_POLL_WITHIN_MS, "within");
    const poll = async (context: FlowScope): Promise<CallResult | undefined> => {
      const until = clock() + withinMs;
      for (;;) {
        const result = await context.step(name, call(), { required: false });
        if (this.#met(result, options.until) && result.endedAt <= until) return result;
        if (clock() + everyMs >= until) break;
        await this.#rest(scope, everyMs);
      }
      if (context.place.group !== null) context.place.group.failed = true;
      if (options.required === true) throw this.#endBecause(scope.iteration, name);
      return undefined;
    };
    return this.group(scope, name, poll) as Promise<CallResult | undefined>;
  }

  /** A failed attempt has no content: reading it does not meet the condition, and ends nothing. */
  #met(result: CallResult, until: (result: CallResult) => boolean): boolean {
    const notMet = new IterationEnd("ended", "not met");
    if (!result.ok) endWhenAsked(result, () => notMet);
    try {
      return until(result) === true;
    } catch (error) {
      if (error === notMet) return false;
      throw error;
    }
  }

  async pause(scope: FlowScope, least: unknown, most: unknown): Promise<void> {
    const refused = this.#admit(scope, "pause");
    if (refused !== undefined) await refused;
    const from = millisecondsOf(least as Duration, "pause");
    const to = most === undefined ? from : millisecondsOf(most as Duration, "pause");
    if (to < from) throw new RangeError("pause: the second time is shorter than the first");
    const ms = to > from ? this.#stream().between(from, to) : from;
    if (scope.phase === null) {
      const now = clock();
      this.#user.iteration.pause(ms, now);
      innermost(scope.place)?.group?.pause(ms, now);
    }
    await this.#rest(scope, ms);
  }

  /** Ends early when the plan does, and the iteration with it. */
  async #rest(scope: FlowScope, ms: number): Promise<void> {
    const until = clock() + ms;
    this.#resting++;
    await this.#host.sleep(ms);
    this.#resting--;
    if (clock() < until - 1) await this.#admit(scope, "pause");
  }

  chance(probability: number): boolean {
    if (!(probability >= 0 && probability <= 1))
      throw new RangeError(`chance: ${probability} is no share from 0 to 1, such as 0.3`);
    return this.#stream().chance(probability);
  }

  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new RangeError("pick: the list is empty");
    return this.#stream().pick(items);
  }

  #stream(): Random {
    const { id } = this.#user;
    this.#random ??= new Random(`${this.#host.seed}/${this.#host.workflow.definition.name}/${id}`);
    return this.#random;
  }

  end(scope: FlowScope, reason: string): never {
    throw this.#endBecause(scope.iteration, reason);
  }

  #outcomeOf(error: unknown): Outcome {
    if (error instanceof IterationEnd) {
      // The content of a call that failed in an earlier iteration, or in userSetup, was read.
      this.#end ??= error;
      return this.#end.outcome;
    }
    // Errors of a body after its call was cut off are not its own.
    if (this.#end?.outcome === "interrupted") return "interrupted";
    this.#host.findings.bodyThrew(error, this.#user.iteration.measured);
    this.#host.observer?.bodyThrew(error);
    return "failed";
  }

  #bodyEnded(outcome: Outcome): void {
    if (this.#bodyDone) return;
    this.#bodyDone = true;
    this.#outcome = outcome;
    if (this.#calls.none) this.#done(clock());
    else if (this.#user.iteration.measured)
      for (const call of this.#calls.underWay()) this.#host.findings.unawaited(call.name);
  }

  #done(now: number): void {
    this.#iteration++;
    const by = this.#outcome === "ended" ? (this.#end?.by ?? "") : null;
    if (by !== null && this.#user.iteration.measured) this.#host.findings.endedBy(by);
    if (by !== null) this.#host.observer?.endedBy(by);
    this.#user.done(this.#outcome, now);
  }

  cut(now = clock()): CutOff | null {
    const underWay = this.#calls.underWay();
    // During setup there is no iteration to cut off.
    const running = !this.#bodyDone || underWay.some(({ aside }) => !aside);
    this.#iteration++;
    this.#bodyDone = true;
    this.#end = new IterationEnd("interrupted", "the graceful stop is over");
    for (const call of underWay) {
      if (call.aside) this.#user.iteration.asideCutOff(call.step, call.startedAt, now, call.sent);
      else this.#user.iteration.cutOff(call.step, call.startedAt, call.dueAt, now, call.sent);
      call.reject(this.#end);
    }
    this.#calls.forgetAll();
    if (!running) return this.#resting > 0 ? "pause" : null;
    if (underWay.length > 0) return "call";
    return this.#resting > 0 ? "pause" : "code";
  }
}
