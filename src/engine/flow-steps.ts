/** Steps of one flow on this core: their names, their numbers, and which tags tell them apart. */

import { PHASE_TAG, UNNAMED_MAX } from "../core/load/stats/names.ts";
import type { ClientCall } from "../protocols/protocol.ts";
import type { WorkflowDefinition } from "../workflow/definition.ts";
import type { Recorder } from "./recorder.ts";

type Tags = Readonly<Record<string, string>>;

type NamedCall = Pick<ClientCall, "path" | "protocol" | "verb">;

/** "GET /items", without the query. */
export function nameOfCall({ path, verb }: NamedCall): string {
  const query = path.indexOf("?");
  return `${verb} ${query < 0 ? path : path.slice(0, query)}`;
}

export class FlowSteps {
  readonly #recorder: Recorder;
  /** Tags of the whole flow. */
  readonly #common: Tags;
  /** Tags of single steps that make a series of their own. */
  readonly #series: readonly string[];
  readonly #numbers = new Map<string, number>();
  readonly #titles = new Set<string>();

  constructor(recorder: Recorder, { series, tags }: WorkflowDefinition) {
    this.#recorder = recorder;
    this.#common = tags;
    this.#series = series;
  }

  /** Returns the number under which calls of this step are counted; `isNamed`: its author named it. */
  number(name: string, protocol: string, tags: Tags | undefined, isNamed = true): number {
    if (tags !== undefined && this.#series.length > 0) {
      const selected = Object.entries(tags).filter(([key]) => this.#series.includes(key));
      if (selected.length > 0)
        return this.#tagged(name, protocol, Object.fromEntries(selected), isNamed);
    }
    if (!isNamed && !this.#keepsTitle(name))
      return this.#recorder.giveUpStep(name, protocol, this.#common);
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#recorder.stepNumber(name, protocol, this.#common);
      this.#numbers.set(name, number);
    }
    return number;
  }

  #tagged(name: string, protocol: string, tags: Tags, isNamed: boolean): number {
    const all = { ...this.#common, ...tags };
    return isNamed || this.#keepsTitle(name)
      ? this.#recorder.stepNumber(name, protocol, all)
      : this.#recorder.giveUpStep(name, protocol, all);
  }

  /** Calls of setup and similar phases are counted apart from those of iterations. */
  asideNumber(name: string, protocol: string, phase: string, isNamed = true): number {
    return this.#tagged(name, protocol, { [PHASE_TAG]: phase }, isNamed);
  }

  /** The same for a call that a function made through a client. */
  asideCall(call: NamedCall, phase: string): number {
    return this.asideNumber(nameOfCall(call), call.protocol, phase, false);
  }

  /** Whether a name derived from an address is within the limit. */
  #keepsTitle(title: string): boolean {
    if (this.#titles.has(title)) return true;
    if (this.#titles.size >= UNNAMED_MAX) return false;
    this.#titles.add(title);
    return true;
  }
}
