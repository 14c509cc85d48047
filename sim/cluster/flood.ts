/**
 * A client that sends requests without waiting for answers: new jobs, status queries, lists, cancels. It never retries,
 * so that a rejected request must have left no effect.
 */

import type { Random } from "../../src/core/base/random.ts";
import type { ClientAnswer, ClientRequest } from "../../src/core/cluster/messages.ts";
import type { World } from "../kernel/world.ts";
import type { TiersCheckers } from "./checkers.ts";
import { drawJob, type JobPlan } from "./jobs.ts";

/** Jobs that one program floods with in all: each of them runs. */
const JOBS_MAX = 8;
/** Beyond this its connections accept no more. */
const UNANSWERED_MAX = 256;
const LOAD_MS_MAX = 500;

interface FloodOptions {
  readonly perSecond: number;
  /** Share of requests that are new jobs. */
  readonly submissions: number;
  readonly until: number;
}

interface FloodHost {
  readonly name: string;
  readonly world: World;
  readonly checkers: TiersCheckers;
  readonly random: Random;
  readonly datacenters: number;
  /** `then` runs with or without an answer. */
  askOnce(request: ClientRequest, then: () => void): void;
  /** Uploads the files of a job where they are missing, then submits it. */
  submitOnce(plan: JobPlan, then: (answer: ClientAnswer | null) => void): void;
  after(delayMs: number, run: () => void): void;
}

export class Flood {
  readonly #host: FloodHost;
  #options: FloodOptions | null = null;
  #jobs = 0;
  #unanswered = 0;

  constructor(host: FloodHost) {
    this.#host = host;
  }

  begin(options: FloodOptions): void {
    const isOn = this.#options !== null;
    this.#options = options;
    if (!isOn) this.#goOn();
  }

  end(): void {
    this.#options = null;
  }

  /** Drops pending requests when its process is gone. */
  forget(): void {
    this.#options = null;
    this.#unanswered = 0;
  }

  #goOn(): void {
    const { random, world } = this.#host;
    const options = this.#options;
    if (options === null || world.now >= options.until) {
      this.#options = null;
      return;
    }
    if (this.#unanswered < UNANSWERED_MAX) this.#ask(random.chance(options.submissions));
    this.#host.after(1_000 / options.perSecond, () => this.#goOn());
  }

  #ask(submits: boolean): void {
    const { checkers, name, random } = this.#host;
    this.#unanswered++;
    if (submits && this.#jobs < JOBS_MAX) {
      const plan = drawJob(random, `${name}-flood-${++this.#jobs}`, {
        ...{
          loadMsMax: LOAD_MS_MAX,
          limited: 0,
          stubborn: 0,
          controlled: 0,
          bundleBytes: 0,
          coresMax: 1,
        },
        datacenters: this.#host.datacenters,
      });
      this.#host.submitOnce(plan, (answer) => {
        this.#unanswered--;
        checkers.onFlooded(plan, answer);
      });
      return;
    }
    this.#host.askOnce(this.#drawRequest(), () => {
      this.#unanswered--;
    });
  }

  #drawRequest(): ClientRequest {
    const { checkers, name, random } = this.#host;
    const known = [...checkers.results.accepted.values()];
    const job = known.length > 0 && random.chance(0.8) ? random.pick(known) : "nobody-has-this";
    switch (random.below(5)) {
      case 0:
        return { kind: "status", job };
      case 1: {
        const control = { kind: "cancel", reason: "flood" } as const;
        return { kind: "control", job: "nobody-has-this", by: name, control };
      }
      case 2:
        return { kind: "watch", job, line: 0, live: false, latencies: false };
      case 3:
        return { kind: "jobs", after: null };
      default:
        return { kind: "nodes" };
    }
  }
}
