/**
 * Pool of executor cores that have started and are idle: a job that gets one does not wait for a process to start. A
 * used core is terminated, never reused: what user code left in it stays with its job.
 */

import type { CoreEvent } from "../core/load/job/core-messages.ts";
import { CoreProcess, type SpawnAs } from "./core-process.ts";

interface CoreHandlers {
  readonly onEvent: (event: CoreEvent) => void;
  /** Called once, when the process exits unexpectedly. */
  readonly onLost: (what: string) => void;
}

interface Warm {
  readonly core: CoreProcess;
  /** Handlers of the current user. */
  handlers: CoreHandlers | null;
}

export class CorePool {
  readonly #size: number;
  readonly #as: SpawnAs;
  readonly #warm: Warm[] = [];
  #numbers = 0;
  #closed = false;

  /** Keeps `size` cores idle. */
  constructor(size: number, as: SpawnAs = {}) {
    this.#size = size;
    this.#as = as;
    this.#fill();
  }

  get warm(): number {
    return this.#warm.length;
  }

  take(handlers: CoreHandlers): CoreProcess {
    const one = this.#warm.shift() ?? this.#start();
    one.handlers = handlers;
    setImmediate(() => this.#fill());
    return one.core;
  }

  /** Terminates the idle cores. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#warm.splice(0).map(({ core }) => core.end()));
  }

  #fill(): void {
    while (!this.#closed && this.#warm.length < this.#size) this.#warm.push(this.#start());
  }

  #start(): Warm {
    const number = this.#numbers++;
    const one: Warm = {
      core: new CoreProcess({
        number,
        inspect: false,
        as: this.#as,
        onEvent: (event) => one.handlers?.onEvent(event),
        onLost: (what) => this.#onLost(one, what),
      }),
      handlers: null,
    };
    return one;
  }

  /** An idle core that is lost is replaced when the next is taken, so that a broken one does not spin. */
  #onLost(one: Warm, what: string): void {
    const place = this.#warm.indexOf(one);
    if (place >= 0) this.#warm.splice(place, 1);
    one.handlers?.onLost(what);
  }
}
