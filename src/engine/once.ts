/**
 * One iteration of a flow as a function, for tests and exploration: no load, no plan clock, and pauses are skipped.
 * Calls go to the network unless answers are given.
 *
 *   const { outcome, calls, checks } = await once(buy, { answers: { home: { status: 200 } } });
 */

import { didYouMean } from "../core/base/nearest.ts";
import { clock } from "../protocols/call.ts";
import { setImmediate } from "../protocols/net/timers.ts";
import type { CallResult, CannedAnswer, PreparedCall } from "../protocols/protocol.ts";
import { prepareCalls } from "../protocols/protocol.ts";
import { DefinitionError } from "../workflow/errors.ts";
import type { Flow } from "../workflow/flow.ts";
import type { FlowPart } from "../workflow/flow-part.ts";
import { type CompiledWorkflow, compile } from "./compiled.ts";
import { Findings } from "./findings.ts";
import { FlowRunner } from "./flow-runner.ts";
import { FlowSteps } from "./flow-steps.ts";
import { Iteration } from "./iteration.ts";
import type { Outcome } from "./outcome.ts";
import { Recorder, type RecorderHost } from "./recorder.ts";
import type { CallObserver, RunnerHost } from "./runner.ts";
import { TimeLimit } from "./time-limit.ts";
import { TracedSession } from "./traced-session.ts";

export interface OnceOptions {
  /** Rows by feed name; an omitted feed gives its first row. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** By step name; with them nothing goes to the network. */
  readonly answers?: Readonly<Record<string, CannedAnswer>>;
  /** Random seed for `chance()`, `pick()` and `pause()`. */
  readonly seed?: string;
  /** Folder that relative paths start in; the working directory by default. */
  readonly folder?: string;
}

export interface OnceCall {
  readonly name: string;
  readonly result: CallResult;
  /** "userSetup" and similar phases; null for calls of the iteration. */
  readonly phase: string | null;
}

/** Details of a call that only `--trace` shows. */
export interface ShownCall {
  readonly described: PreparedCall | null;
  /** The requests as sent; null where they cannot be attributed to this call alone. */
  readonly sent: readonly string[] | null;
}

export interface OnceResult {
  readonly outcome: Outcome;
  /** Step or reason that ended it; null otherwise. */
  readonly endedBy: string | null;
  /** Error thrown by the body. */
  readonly error: unknown;
  readonly calls: readonly OnceCall[];
  readonly checks: readonly { readonly name: string; readonly passed: boolean }[];
  /** Notes that a run would add. */
  readonly notes: readonly string[];
}

const OPTION_NAMES = Object.keys({
  data: true,
  answers: true,
  seed: true,
  folder: true,
} satisfies Record<keyof OnceOptions, true>);

export function once(flow: Flow, options: OnceOptions = {}): Promise<OnceResult> {
  const part = flow?.definition?.flow ?? null;
  if (part === null) throw new DefinitionError("once(…) takes a flow, as flow(…) gives it");
  const stray = Object.keys(options).find((name) => !OPTION_NAMES.includes(name));
  if (stray !== undefined)
    throw new DefinitionError(
      `once: there is no option "${stray}"${didYouMean(stray, OPTION_NAMES)}`,
    );
  return new Rehearsal(compile(flow.definition, {}), part, options).run();
}

/** No plan time passes, and what is recorded in it is not read. */
const NO_PLAN: RecorderHost = {
  measuredMs: () => 0,
  clockAtMeasured: () => Number.POSITIVE_INFINITY,
  load: { active: 0, target: 0 },
  lag: { vitalsOfWindow: () => ({ cpuMs: 0, lagMsMax: 0 }) },
};

/** Receives every call as well; `--trace` shows them. */
type CallShower = (call: OnceCall, shown: ShownCall) => void;

export class Rehearsal implements RunnerHost, CallObserver {
  readonly workflow: CompiledWorkflow;
  readonly recorder = new Recorder(false, NO_PLAN);
  readonly findings: Findings;
  readonly flowSteps: FlowSteps;
  readonly planned = false;
  readonly stopping = false;
  readonly core = 0;
  readonly used = {};
  readonly seed: string;
  readonly observer = this;
  readonly signal: AbortSignal = new AbortController().signal;
  setup: unknown = undefined;
  readonly #part: FlowPart;
  readonly #options: OnceOptions;
  readonly #show: CallShower;
  readonly #calls: OnceCall[] = [];
  readonly #checks: { name: string; passed: boolean }[] = [];
  #session: TracedSession | undefined;
  #endedBy: string | null = null;
  #error: unknown = undefined;

  constructor(
    workflow: CompiledWorkflow,
    part: FlowPart,
    options: OnceOptions,
    show: CallShower = () => undefined,
  ) {
    this.workflow = workflow;
    this.#part = part;
    this.#options = options;
    this.#show = show;
    this.seed = options.seed ?? "";
    // The iteration is not part of a warm-up: notes of a run apply.
    this.recorder.measureFrom(Number.NEGATIVE_INFINITY);
    this.findings = new Findings(workflow.definition.name, () => undefined);
    this.flowSteps = new FlowSteps(this.recorder, workflow.definition);
  }

  async run(): Promise<OnceResult> {
    const { settings } = this.workflow;
    const folder = this.#options.folder ?? process.cwd();
    if (this.#options.answers === undefined) await prepareCalls([], { settings, folder });
    const data = await this.#rows(folder);
    const session = new TracedSession(settings);
    this.#session = session;
    let finished: (outcome: Outcome) => void = () => undefined;
    const iteration = new Iteration(this.recorder, false);
    const user = { id: 0, host: this, session, iteration, done: (end: Outcome) => finished(end) };
    try {
      const limit = new TimeLimit("setup", Number.MAX_SAFE_INTEGER);
      this.setup = await new FlowRunner(user, this.#part).beside("setup", limit);
      const runner = new FlowRunner(user, this.#part);
      runner.context.data = data;
      await runner.setUp();
      const outcome = await new Promise<Outcome>((resolve) => {
        finished = resolve;
        iteration.begin(clock());
        session.trace?.begin();
        runner.begin();
      });
      return this.#result(outcome);
    } finally {
      session.close();
    }
  }

  #result(outcome: Outcome): OnceResult {
    const notes = [...this.findings.notes, ...this.findings.counted.texts];
    const [calls, checks] = [this.#calls, this.#checks];
    return { outcome, endedBy: this.#endedBy, error: this.#error, calls, checks, notes };
  }

  async #rows(folder: string): Promise<Record<string, unknown>> {
    const rows: Record<string, unknown> = { ...this.#options.data };
    for (const [name, feed] of this.workflow.definition.feeds)
      if (!(name in rows)) rows[name] = (await feed.load(folder)).row(0);
    return rows;
  }

  answer(name: string, call: PreparedCall): CallResult | null {
    const { answers } = this.#options;
    if (answers === undefined) return null;
    const answer = answers[name];
    if (answer === undefined) throw new Error(`once: there is no answer for the step "${name}"`);
    if (call.answered === undefined)
      throw new Error(`once: a call of ${call.protocol} ("${name}") cannot be given an answer`);
    return call.answered(answer);
  }

  called(name: string, phase: string | null, call: PreparedCall | null, result: CallResult): void {
    const made = { name, result, phase };
    this.#calls.push(made);
    const sent = this.#session?.takeSent(result.sent) ?? null;
    this.#show(made, { described: call, sent });
  }

  checked(name: string, passed: boolean): void {
    this.#checks.push({ name, passed });
  }

  endedBy(by: string): void {
    this.#endedBy = by;
  }

  bodyThrew(error: unknown): void {
    this.#error = error;
  }

  /** Pauses of a single iteration are skipped. */
  sleep(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  readonly abort = (reason: string): void => {
    throw new Error(`the flow asked for the end of the run: ${reason}`);
  };

  /** Only workflows of steps call these. */
  threw(): void {}
  recordMetric(): void {}
  keepLast(): void {}
  notMeasured(): void {}
}
