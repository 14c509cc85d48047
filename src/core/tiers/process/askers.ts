/** Who waits for an answer of this process, by the number that it was asked under. */

import type { StreamId } from "../link/types.ts";

/** Requests of one caller that may wait for an answer; further ones are refused at once. */
const REQUESTS_PER_CALLER_MAX = 64;

interface Asker {
  /** The connection that the answer goes to; none for what the process asks itself. */
  readonly stream?: StreamId;
}

export class Askers<Who extends Asker> {
  readonly #byId = new Map<number, Who>();
  readonly #perStream = new Map<StreamId, number>();
  #ids = 0;

  /** A number that nobody else has. */
  nextId(): number {
    return ++this.#ids;
  }

  add(who: Who): number {
    const id = this.nextId();
    this.#byId.set(id, who);
    this.#count(who, 1);
    return id;
  }

  isFull(stream: StreamId): boolean {
    return (this.#perStream.get(stream) ?? 0) >= REQUESTS_PER_CALLER_MAX;
  }

  /** Undefined once it was answered, or its caller is gone. */
  take(id: number): Who | undefined {
    const who = this.#byId.get(id);
    if (who === undefined) return undefined;
    this.#byId.delete(id);
    this.#count(who, -1);
    return who;
  }

  forget(stream: StreamId): void {
    if (!this.#perStream.has(stream)) return;
    for (const [id, who] of this.#byId) if (who.stream === stream) this.take(id);
  }

  #count({ stream }: Who, more: 1 | -1): void {
    if (stream === undefined) return;
    const waiting = (this.#perStream.get(stream) ?? 0) + more;
    if (waiting === 0) this.#perStream.delete(stream);
    else this.#perStream.set(stream, waiting);
  }
}
