/** The steps of one flow on this core: their names, their numbers, and which tags tell them apart. */

import type { ClientCall, PreparedCall } from "../protocols/protocol.ts";
import type { WorkflowDefinition } from "../workflow/definition.ts";
import type { Recorder } from "./recorder.ts";

/** Steps that are named by their call: an address may hold an id, so they get fewer names. */
const UNNAMED_MAX = 200;
const OTHER = "(other)";

type Tags = Readonly<Record<string, string>>;

type NamedCall = Pick<ClientCall, "path" | "protocol" | "verb">;

/** "GET /items", whatever it asked for there. */
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

  /** The number under which calls of this step are counted. */
  number(name: string, protocol: string, tags: Tags | undefined): number {
    if (tags !== undefined && this.#series.length > 0) {
      const selected = Object.entries(tags).filter(([key]) => this.#series.includes(key));
      if (selected.length > 0) return this.#tagged(name, protocol, Object.fromEntries(selected));
    }
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#recorder.stepNumber(name, protocol, this.#common);
      this.#numbers.set(name, number);
    }
    return number;
  }

  #tagged(name: string, protocol: string, tags: Tags): number {
    return this.#recorder.stepNumber(name, protocol, { ...this.#common, ...tags });
  }

  /** Calls of setup and its kin are counted apart from those of iterations. */
  asideNumber(name: string, protocol: string, phase: string): number {
    return this.#tagged(name, protocol, { phase });
  }

  /** The same of a call that a function made by a client. */
  asideCall(call: NamedCall, phase: string): number {
    return this.asideNumber(this.#bounded(nameOfCall(call)), call.protocol, phase);
  }

  /** The name of a step that was given none. */
  title(call: PreparedCall): string {
    return this.#bounded(call.title ?? call.protocol);
  }

  /** A name made of an address. */
  #bounded(title: string): string {
    if (this.#titles.has(title)) return title;
    if (this.#titles.size >= UNNAMED_MAX) return OTHER;
    this.#titles.add(title);
    return title;
  }
}
