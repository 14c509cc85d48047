/**
 * Runs the iterations of a `workflow(…)`: a loop over its layers, driven by callbacks so that a prepared step needs no
 * promise. Steps of a layer run concurrently; the next layer begins when all are done.
 *
 *   begin ──▶ layer 0 ──▶ layer 1 ──▶ … ──▶ done
 */

import { clock } from "../protocols/call.ts";
import { DescriptionAwaited } from "../protocols/description.ts";
import {
  type BoundCall,
  type CallRecord,
  CallResult,
  type CallSink,
  type ClientCall,
} from "../protocols/protocol.ts";
import { CustomResult } from "../workflow/custom-result.ts";
import type { CheckDefinition } from "../workflow/definition.ts";
import type { CompiledStep } from "./compiled.ts";
import { stepContext, type UserContext, userContext } from "./context.ts";
import { nameOfCall } from "./flow-steps.ts";
import type { CutOff, Outcome } from "./outcome.ts";
import type { Runner, RunnerHost, RunnerUser } from "./runner.ts";
import { FunctionSession, type SessionListener } from "./session.ts";

/** Calls of one iteration that may wait for a step to return them. */
const CALLS_ENDED_MAX = 256;

/** A finished call that a function made through a client. */
interface EndedCall {
  /** Step whose function made it; null for userSetup and similar phases. */
  readonly step: CompiledStep | null;
  readonly result: CallResult;
  readonly verb: string;
  readonly path: string;
  /** Empty unless single calls are sampled. */
  readonly title: string;
}

export class LayersRunner implements Runner, SessionListener {
  readonly context: UserContext;
  readonly #user: RunnerUser;
  readonly #host: RunnerHost;
  readonly #slots: (StepSlot | undefined)[];
  /** Phase of calls that belong to no step. */
  #phase: "userSetup" | "userTeardown" = "userSetup";
  /** Calls of functions that no step has returned so far; null until there is one. */
  #calls: EndedCall[] | null = null;
  #layer = 0;
  /** When the steps of this layer were due. */
  #layerDueAt = 0;
  #pending = 0;

  constructor(user: RunnerUser) {
    this.#user = user;
    this.#host = user.host;
    // Sized exactly: a growing array would reserve 17 entries, for every user.
    this.#slots = new Array(user.host.workflow.steps.length);
    user.session.listener = this;
    this.context = userContext(user.id, user.host, user.session, user.iteration);
  }

  setUp(): unknown {
    return this.#host.workflow.definition.userSetup?.(this.context);
  }

  tearDown(): unknown {
    // Calls of userSetup that no iteration followed.
    this.#countUnreturned();
    this.#phase = "userTeardown";
    return this.#host.workflow.definition.userTeardown?.(this.context);
  }

  begin(now: number): void {
    this.#layer = 0;
    if (this.#host.workflow.storesResults) this.context.results = {};
    this.#runLayer(now);
  }

  #runLayer(now: number): void {
    const layer = this.#host.workflow.layers[this.#layer];
    if (layer === undefined) {
      this.#done(now, "completed");
      return;
    }
    this.#pending = layer.length;
    this.#layerDueAt = this.#user.iteration.dueOf(now);
    for (let i = 0; i < layer.length; i++) this.#slot(layer[i] as CompiledStep).start(now);
  }

  #slot(step: CompiledStep): StepSlot {
    let slot = this.#slots[step.slot];
    if (slot === undefined) {
      slot = new StepSlot(this, step);
      this.#slots[step.slot] = slot;
    }
    return slot;
  }

  bind(step: CompiledStep, sink: CallSink): BoundCall | null {
    return step.call?.bind(this.#user.session, this.#host.workflow.keepsResults, sink) ?? null;
  }

  /** A prepared call has ended: it began with its layer. */
  callFinished(slot: StepSlot, record: CallRecord, result: CallResult | undefined): void {
    this.#user.iteration.answered(record.endedAt);
    this.#user.iteration.call(
      slot.step.index,
      record.errorKind === null ? record : (result ?? record),
      slot.startedAt,
      this.#layerDueAt,
      record.endedAt,
    );
    this.#stepFinished(slot.step, record, result, record.endedAt);
  }

  /** The function of a step with its context: clients whose calls are attributed to this step. */
  functionOf(step: CompiledStep): StepFunction | null {
    const { run } = step;
    if (run === null) return null;
    const session = new FunctionSession(this.#user.session, (call, result) =>
      this.#recordCall(step, call, result),
    );
    const context = stepContext(this.context, session);
    return { session, run: () => run(context) };
  }

  clientCallEnded(call: ClientCall, result: CallResult): void {
    this.#recordCall(null, call, result);
  }

  #recordCall(step: CompiledStep | null, call: ClientCall, result: CallResult): void {
    if (step !== null) this.#user.iteration.answered(result.endedAt);
    const { path, verb } = call;
    const title = this.#host.recorder.samplesCalls ? call.title : "";
    this.#calls ??= [];
    this.#calls.push({ step, result, verb, path, title });
    if (this.#calls.length <= CALLS_ENDED_MAX) return;
    const oldest = this.#calls.shift();
    if (oldest !== undefined) this.#unreturned(oldest);
  }

  /** No step returned it: it is a step of its own, beside the one that made it or outside the iterations. */
  #unreturned({ path, result, step, title, verb }: EndedCall): void {
    const { iteration } = this.#user;
    const { endedAt, protocol, startedAt } = result;
    const call = { verb, path, protocol };
    if (step === null || step.index < 0) {
      iteration.aside(this.#asideNumber(step, call), result);
      return;
    }
    const name = `${step.name} > ${nameOfCall(call)}`;
    const number = this.#host.flowSteps.number(name, protocol, undefined);
    this.#host.recorder.entitle(result, title);
    iteration.call(number, result, startedAt, iteration.dueOf(startedAt), endedAt);
  }

  #asideNumber(
    step: CompiledStep | null,
    call: Pick<ClientCall, "path" | "protocol" | "verb">,
  ): number {
    return this.#host.flowSteps.asideCall(call, step === null ? this.#phase : "action");
  }

  #countUnreturned(): void {
    if (this.#calls === null || this.#calls.length === 0) return;
    for (const call of this.#calls) this.#unreturned(call);
    this.#calls = null;
  }

  /** A result may wrap that of the underlying call: its times are the same. */
  #returned(result: CallResult): void {
    const calls = this.#calls;
    if (calls === null) return;
    const { endedAt, startedAt } = result;
    // Backwards: nearly always it is the last one.
    for (let at = calls.length - 1; at >= 0; at--) {
      const ended = calls[at] as EndedCall;
      if (ended.result.endedAt !== endedAt || ended.result.startedAt !== startedAt) continue;
      this.#host.recorder.entitle(result, ended.title);
      if (at === calls.length - 1) calls.pop();
      else calls.splice(at, 1);
      return;
    }
  }

  /** A function returned the result of a call that it began itself, at a time of its own choice. */
  functionFinished(slot: StepSlot, result: CallResult): void {
    const now = clock();
    // Custom results may be measured with another clock.
    const own = result instanceof CustomResult;
    if (!own) this.#returned(result);
    if (own) this.#user.iteration.answered(now);
    else this.#user.iteration.answered(result.endedAt);
    const startedAt = own ? slot.startedAt : result.startedAt;
    const dueAt = own ? this.#layerDueAt : this.#user.iteration.dueOf(startedAt);
    this.#user.iteration.call(
      slot.step.index,
      result,
      startedAt,
      dueAt,
      own ? now : result.endedAt,
    );
    this.#stepFinished(slot.step, result, result, now);
  }

  #stepFinished(
    step: CompiledStep,
    record: CallRecord,
    result: CallResult | undefined,
    now: number,
  ): void {
    const host = this.#host;
    if (result !== undefined) {
      this.context.results[step.name] = result;
      if (record.errorKind === null) host.keepLast(step, result);
    }
    if (--this.#pending === 0) this.#layerDone(now);
  }

  actionFinished(step: CompiledStep, result: unknown): void {
    this.context.results[step.name] = result;
    this.#host.keepLast(step, result);
    if (--this.#pending === 0) this.#layerDone(clock());
  }

  stepThrew(step: CompiledStep, error: unknown): void {
    const now = clock();
    if (step.index >= 0) this.#user.iteration.exception(step.index, this.#layerDueAt, now, error);
    this.#host.threw(step, error);
    if (--this.#pending === 0) this.#layerDone(now);
  }

  notMeasured(step: CompiledStep, error: Error): void {
    this.#host.notMeasured(step, error);
    this.stepThrew(step, error);
  }

  #layerDone(now: number): void {
    const host = this.#host;
    const checks = host.workflow.checks[this.#layer];
    if (checks !== undefined && checks.length > 0) {
      for (const { definition, index } of checks)
        this.#user.iteration.check(index, this.#test(definition), this.#layerDueAt);
    }
    this.#layer++;
    const last = this.#layer === host.workflow.layers.length;
    if (last) this.#done(now, "completed");
    else if (host.stopping || this.#user.session.closed) this.#done(now, "interrupted");
    else this.#runLayer(now);
  }

  #test({ name, test }: CheckDefinition): boolean {
    try {
      return this.#host.findings.checked(name, test(this.context));
    } catch {
      return false;
    }
  }

  #done(now: number, outcome: Outcome): void {
    const host = this.#host;
    if (outcome === "completed" && this.#user.iteration.measured)
      for (let at = 0; at < host.workflow.metrics.length; at++) host.recordMetric(at, this.context);
    this.#countUnreturned();
    this.#user.done(outcome, now);
  }

  cut(now: number): CutOff | null {
    let waitingFor: CutOff | null = null;
    this.#countUnreturned();
    this.#cutCalls(null, this.#user.session.takeUnderWay(), now);
    for (const slot of this.#slots) {
      if (slot === undefined) continue;
      // Calls that a function did not await may still be under way.
      this.#cutCalls(slot.step, slot.takeUnderWay(), now);
      if (!slot.cut()) continue;
      const { sent, startedAt, step } = slot;
      if (step.index < 0) waitingFor ??= "code";
      else {
        waitingFor = "call";
        this.#user.iteration.cutOff(step.index, startedAt, this.#layerDueAt, now, sent);
      }
    }
    return waitingFor;
  }

  /** Counts the requests of a step's calls under the step: it is unknown which one it would return. */
  #cutCalls(step: CompiledStep | null, calls: readonly ClientCall[], now: number): void {
    for (const call of calls) {
      const { sent, startedAt } = call;
      if (step !== null && step.index >= 0) this.#host.recorder.sent(step.index, sent);
      else this.#user.iteration.asideCutOff(this.#asideNumber(step, call), startedAt, now, sent);
    }
  }
}

/** Function of a step, and the clients it calls with. */
interface StepFunction {
  readonly session: FunctionSession;
  run(): unknown;
}

/** One step of one user: its bound call or function, and whether it is under way. */
class StepSlot implements CallSink {
  readonly step: CompiledStep;
  readonly #user: LayersRunner;
  readonly #call: BoundCall | null;
  readonly #function: StepFunction | null;
  readonly #resolved: ((value: unknown) => void) | null;
  readonly #rejected: ((error: unknown) => void) | null;
  #running = false;
  #cut = false;
  startedAt = 0;

  constructor(user: LayersRunner, step: CompiledStep) {
    this.#user = user;
    this.step = step;
    this.#call = user.bind(step, this);
    this.#function = user.functionOf(step);
    const isFunction = this.#function !== null;
    this.#resolved = isFunction ? (value) => this.#returned(value) : null;
    this.#rejected = isFunction ? (error) => this.#threw(error) : null;
  }

  start(now: number): void {
    this.#running = true;
    this.startedAt = now;
    if (this.#call !== null) {
      this.#call.start(now);
      return;
    }
    try {
      const value = this.#function?.run();
      // Values and promises take the same path, one microtask later.
      Promise.resolve(value).then(this.#resolved, this.#rejected);
    } catch (error) {
      Promise.reject(error).then(null, this.#rejected);
    }
  }

  callFinished(record: CallRecord, result: CallResult | undefined): void {
    if (this.#cut) return;
    this.#running = false;
    this.#user.callFinished(this, record, result);
  }

  /** Requests of the prepared call under way. */
  get sent(): number {
    return this.#call?.sent ?? 0;
  }

  takeUnderWay(): readonly ClientCall[] {
    return this.#function?.session.takeUnderWay() ?? [];
  }

  cut(): boolean {
    const wasRunning = this.#running;
    this.#cut = true;
    this.#running = false;
    return wasRunning;
  }

  #returned(value: unknown): void {
    if (this.#cut) return;
    this.#running = false;
    if (this.step.index < 0) this.#user.actionFinished(this.step, value);
    else if (value instanceof CallResult) this.#user.functionFinished(this, value);
    else this.#user.notMeasured(this.step, new Error(notMeasured(this.step.name, value)));
  }

  #threw(error: unknown): void {
    if (this.#cut) return;
    this.#running = false;
    if (error instanceof DescriptionAwaited) this.#user.notMeasured(this.step, error);
    else this.#user.stepThrew(this.step, error);
  }
}

/** For JavaScript users, who get no compiler error. */
function notMeasured(name: string, value: unknown): string {
  const got = value === null ? "null" : value === undefined ? "nothing" : `a plain ${typeof value}`;
  return (
    `step "${name}" returned ${got}; a step must return a protocol response (for example ` +
    `"return http.get(…)") or measure(() => …). Work that is not measured belongs in .action(…)`
  );
}
