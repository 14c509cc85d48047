/**
 * One virtual user: its identity, its connections, and what it has acquired for the next iteration. The runner performs
 * the iteration: `layers.ts` for a `workflow(…)`, `flow-runner.ts` for a `flow(…)`. Both report to the same
 * `Iteration`, which alone counts.
 *
 *   parked ──begin──▶ runner ──▶ iteration done ──▶ (execution decides: again, wait, end)
 */

import { clock } from "../protocols/call.ts";
import { clearTimeout } from "../protocols/net/timers.ts";
import { FlowRunner } from "./flow-runner.ts";
import { Iteration } from "./iteration.ts";
import { LayersRunner } from "./layers.ts";
import type { Outcome } from "./outcome.ts";
import type { Runner, RunnerHost, RunnerUser } from "./runner.ts";
import { UserSession } from "./session.ts";

/** Interface of a user to its execution, besides that of its runner. */
export interface UserHost extends RunnerHost {
  iterationDone(user: VirtualUser, now: number): void;
}

export class VirtualUser implements RunnerUser {
  readonly id: number;
  readonly host: UserHost;
  readonly session: UserSession;
  readonly iteration: Iteration;
  readonly #runner: Runner;
  /** Begun, and neither parked nor finished. */
  running = false;
  /** Ends after this iteration: the plan asks for fewer users. */
  retiring = false;
  /** Has been set up (`userSetup`). */
  ready = false;
  settingUp = false;
  /** Being torn down (`userTeardown`): retiring it again changes nothing. */
  leaving = false;
  timer: NodeJS.Timeout | undefined;
  /** Ticket acquired for the next iteration, while it waits for the rest. */
  ticket: number | null = null;
  /** Start of its wait for a ticket or a row; null: it is not waiting. */
  waitingSince: number | null = null;
  admitted = false;
  rows: Record<string, unknown> | null = null;
  /** Rows that this user has in all its iterations. */
  ownRows: Readonly<Record<string, unknown>> | null = null;

  constructor(id: number, host: UserHost) {
    this.id = id;
    this.host = host;
    this.iteration = new Iteration(host.recorder, host.planned);
    this.session = new UserSession(host.workflow.settings, id);
    this.#runner =
      host.workflow.flow === null
        ? new LayersRunner(this)
        : new FlowRunner(this, host.workflow.flow);
  }

  get context(): Runner["context"] {
    return this.#runner.context;
  }

  /** Current activity, for people. */
  get doing(): string {
    if (this.settingUp) return "in userSetup";
    return this.leaving ? "in userTeardown" : "in an iteration";
  }

  setUp(): unknown {
    return this.#runner.setUp();
  }

  tearDown(): unknown {
    return this.#runner.tearDown();
  }

  /** Begins the iteration that `iteration.arrive` announced. */
  begin(now: number): void {
    this.running = true;
    this.iteration.begin(now);
    this.session.trace?.begin();
    this.#runner.begin(now);
  }

  /** Called when its runner has finished the iteration. */
  done(outcome: Outcome, now: number): void {
    this.running = false;
    this.context.iteration++;
    this.session.trace?.end();
    this.session.reset();
    this.iteration.end(outcome, now);
    this.host.iterationDone(this, now);
  }

  /** Cuts off what is under way. */
  abort(): void {
    clearTimeout(this.timer);
    const now = clock();
    const waitingFor = this.#runner.cut(now);
    if (this.settingUp) this.iteration.neverSetUp(waitingFor, now);
    else if (waitingFor !== null && !this.leaving) this.iteration.interrupt(waitingFor, now);
    this.session.close();
  }

  /** Ends a user without an iteration under way; calls that it did not await may be. */
  leave(): void {
    this.running = false;
    this.#runner.cut(clock());
    this.session.close();
  }
}
