/**
 * Context object of a flow's body and of each of its groups: new for every iteration, so that steps which outlive
 * theirs are detected. Functions are created on access, since a body uses few of them.
 */

import type { CallResult, PreparedCall } from "../protocols/protocol.ts";
import type { UserInfo } from "../workflow/context.ts";
import type { FlowContext, Poll, PollOptions, Step } from "../workflow/flow-context.ts";
import type { Place } from "./flow-group.ts";

/** Interface of a body's context to its runner. */
export interface ScopeOwner {
  readonly data: Readonly<Record<string, unknown>>;
  readonly state: unknown;
  readonly setup: unknown;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  readonly abort: (reason: string) => void;
  step(scope: FlowScope, first: unknown, second: unknown, third: unknown): Promise<unknown>;
  check(scope: FlowScope, name: string, test: () => unknown): boolean;
  group(scope: FlowScope, name: string, body: (context: FlowScope) => unknown): Promise<unknown>;
  poll(
    scope: FlowScope,
    name: string,
    call: () => PreparedCall,
    options: PollOptions<CallResult>,
  ): Promise<unknown>;
  pause(scope: FlowScope, least: unknown, most: unknown): Promise<void>;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  end(scope: FlowScope, reason: string): never;
}

export class FlowScope implements FlowContext {
  /** Iteration of its user that it belongs to. */
  readonly iteration: number;
  readonly place: Place;
  /** "userSetup" and similar phases, whose calls are measured apart; null in a body. */
  readonly phase: string | null;
  readonly data: Readonly<Record<string, unknown>>;
  /** Calls refused because the iteration is over. */
  refusals = 0;
  readonly #owner: ScopeOwner;

  constructor(owner: ScopeOwner, iteration: number, place: Place, phase: string | null) {
    this.#owner = owner;
    this.iteration = iteration;
    this.place = place;
    this.phase = phase;
    this.data = owner.data;
  }

  get step(): Step {
    const step = (first: unknown, second: unknown, third: unknown): Promise<unknown> =>
      this.#owner.step(this, first, second, third);
    return step as Step;
  }
  get check(): FlowContext["check"] {
    return (name, test) => this.#owner.check(this, name, test);
  }
  get group(): FlowContext["group"] {
    return ((name, body) => this.#owner.group(this, name, body)) as FlowContext["group"];
  }
  get poll(): Poll {
    const poll = (name: string, call: () => PreparedCall, options: PollOptions<CallResult>) =>
      this.#owner.poll(this, name, call, options);
    return poll as Poll;
  }
  get pause(): FlowContext["pause"] {
    return (least, most) => this.#owner.pause(this, least, most);
  }
  get chance(): FlowContext["chance"] {
    return (probability) => this.#owner.chance(probability);
  }
  get pick(): FlowContext["pick"] {
    return (items) => this.#owner.pick(items);
  }
  get end(): FlowContext["end"] {
    return (reason) => this.#owner.end(this, reason);
  }
  get state(): unknown {
    return this.#owner.state;
  }
  get setup(): unknown {
    return this.#owner.setup;
  }
  get user(): UserInfo {
    return this.#owner.user;
  }
  get signal(): AbortSignal {
    return this.#owner.signal;
  }
  get abort(): (reason: string) => void {
    return this.#owner.abort;
  }
}
