/** What drives the iterations of a virtual user, and what it knows of user and execution. */

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

/** Who looks at single calls of a flow; a run under load has none. */
export interface CallObserver {
  /** An answer instead of the network; null to perform the call. */
  answer(name: string, call: PreparedCall): CallResult | null;
  /** `call` is null where code was timed. */
  called(name: string, phase: string | null, call: PreparedCall | null, result: CallResult): void;
  checked(name: string, passed: boolean): void;
  endedBy(by: string): void;
  bodyThrew(error: unknown): void;
}

/** What a runner asks of, and tells, the execution that its user belongs to. */
export interface RunnerHost extends ContextHost {
  readonly workflow: CompiledWorkflow;
  /** No new step may begin. */
  readonly stopping: boolean;
  readonly recorder: Recorder;
  /** Iterations begin at planned moments: an open model. */
  readonly planned: boolean;
  readonly observer: CallObserver | null;
  /** What is not in the figures. */
  readonly findings: Findings;
  /** The steps of a flow as they are met. */
  readonly flowSteps: FlowSteps;
  /** Of the run: users draw from streams of their own. */
  readonly seed: string;
  /** The code of a step or an action threw. */
  threw(step: CompiledStep, error: unknown): void;
  recordMetric(at: number, context: UserContext): void;
  keepLast(step: CompiledStep, result: unknown): void;
  /** A step gave something that is no measured call: its author must mend that. */
  notMeasured(step: CompiledStep, error: Error): void;
}

interface RunnerContext {
  data: Readonly<Record<string, unknown>>;
  iteration: number;
  /** Of `userSetup` or `userTeardown`, while it runs. */
  limit: TimeLimit | null;
}

/** Drives the iterations of one user. */
export interface Runner {
  /** What the iteration works with; the execution puts the rows of feeds there. */
  readonly context: RunnerContext;
  /** Once, before the first iteration. */
  setUp(): unknown;
  /** Once, after the last. */
  tearDown(): unknown;
  begin(now: number): void;
  /** Cuts off what is under way; says what the iteration waited for, null when there is none. */
  cut(now: number): CutOff | null;
}

/** The user as its runner sees it. */
export interface RunnerUser {
  readonly id: number;
  readonly host: RunnerHost;
  readonly session: UserSession;
  readonly iteration: Iteration;
  /** The iteration is over. */
  done(outcome: Outcome, now: number): void;
}
