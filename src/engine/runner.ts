/** Interface of a runner, which drives the iterations of a virtual user, to user and execution. */

import type { CallResult, PreparedCall } from "../protocols/protocol.ts";
import type { CompiledStep, CompiledWorkflow } from "./compiled.ts";
import type { ContextHost, UserContext } from "./context.ts";
import type { Findings } from "./findings.ts";
import type { FlowSteps } from "./flow-steps.ts";
import type { Iteration } from "./iteration.ts";
import type { CutOff, Outcome } from "./outcome.ts";
import type { Recorder } from "./recorder.ts";
import type { UserSession } from "./session.ts";
import type { TimeLimit } from "./time-limit.ts";

/** Observer of single calls of a flow; a run under load has none. */
export interface CallObserver {
  /** An answer instead of the network; null to perform the call. */
  answer(name: string, call: PreparedCall): CallResult | null;
  /** `call` is null where code was timed. */
  called(name: string, phase: string | null, call: PreparedCall | null, result: CallResult): void;
  checked(name: string, passed: boolean): void;
  endedBy(by: string): void;
  bodyThrew(error: unknown): void;
}

/** Interface of a runner to the execution of its user. */
export interface RunnerHost extends ContextHost {
  readonly workflow: CompiledWorkflow;
  /** No new step may begin. */
  readonly stopping: boolean;
  readonly recorder: Recorder;
  /** Iterations begin at planned times: an open model. */
  readonly planned: boolean;
  readonly observer: CallObserver | null;
  /** Findings beyond the metrics. */
  readonly findings: Findings;
  /** Steps of a flow, registered as they occur. */
  readonly flowSteps: FlowSteps;
  /** Seed of the run: users draw from streams of their own. */
  readonly seed: string;
  /** The code of a step or an action threw. */
  threw(step: CompiledStep, error: unknown): void;
  recordMetric(at: number, context: UserContext): void;
  keepLast(step: CompiledStep, result: unknown): void;
  /** A step returned something that is no measured call: its author must fix that. */
  notMeasured(step: CompiledStep, error: Error): void;
}

interface RunnerContext {
  data: Readonly<Record<string, unknown>>;
  iteration: number;
  /** Time limit of `userSetup` or `userTeardown`, while it runs. */
  limit: TimeLimit | null;
}

/** Drives the iterations of one user. */
export interface Runner {
  /** Context of the iteration; the execution puts the rows of feeds there. */
  readonly context: RunnerContext;
  /** Runs once, before the first iteration. */
  setUp(): unknown;
  /** Runs once, after the last. */
  tearDown(): unknown;
  begin(now: number): void;
  /** Cuts off what is under way; returns what was waited for, null when no iteration and no pause was. */
  cut(now: number): CutOff | null;
}

/** The user as seen by its runner. */
export interface RunnerUser {
  readonly id: number;
  readonly host: RunnerHost;
  readonly session: UserSession;
  readonly iteration: Iteration;
  /** Ends the iteration. */
  done(outcome: Outcome, now: number): void;
}
