/**
 * Custom metrics of a mix: a value belongs to the flow whose code adds it. `metric.add(…)` has no context, so the flow
 * is tracked along the asynchronous calls of its body. That costs something on every await, so only mixes in files with
 * metrics pay for it.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { FlowPart } from "../workflow/flow-part.ts";
import type { MetricKind, MetricSink, MetricTags } from "../workflow/metrics.ts";
import type { Execution } from "./execution.ts";

export class MixMetrics implements MetricSink {
  readonly #flows: readonly Pick<Execution, "recorder" | "users">[];
  readonly #running = new AsyncLocalStorage<number>();

  /** `flows` may still grow: they are prepared one after the other. */
  constructor(flows: readonly Pick<Execution, "recorder" | "users">[]) {
    this.#flows = flows;
  }

  /** Wraps the functions of a flow so that their values are attributed to this number. */
  follow(number: number, flow: FlowPart): FlowPart {
    const followed = <Context>(code: (context: Context) => unknown) => {
      return (context: Context): unknown => this.#running.run(number, code, context);
    };
    const { userSetup, userTeardown } = flow;
    return {
      ...flow,
      body: followed(flow.body),
      userSetup: userSetup && followed(userSetup),
      userTeardown: userTeardown && followed(userTeardown),
    };
  }

  add(name: string, kind: MetricKind, value: number, tags: MetricTags): void {
    const flow = this.#flows[this.#running.getStore() ?? -1] ?? this.#fallback;
    flow?.recorder.add(name, kind, value, tags);
  }

  /** Flow for code that no flow called: one that still has users reports its values. */
  get #fallback(): Pick<Execution, "recorder" | "users"> | undefined {
    return this.#flows.find(({ users }) => users > 0) ?? this.#flows[0];
  }
}
