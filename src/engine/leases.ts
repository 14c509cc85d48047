/**
 * Indices leased in blocks from the manager, so that iterations and data rows are handed out exactly
 * once over all cores. The next block is asked for before this one is used up; when the loop is
 * faster than the manager, users wait for the block instead of taking an index twice.
 *
 * Where iterations end the load, a core asks for no more rows than it has iterations: a row that lies
 * unused on one core would be missing on another.
 */

import { ITERATIONS_LEASE } from "../core/run/job/core-messages.ts";

export interface LeaseRequester {
  request(name: string, size: number): void;
}

/** An index, or: none now but perhaps later, or: none ever. */
type Taken = number | "wait" | "exhausted";

export class IndexLease {
  readonly #name: string;
  readonly #size: number;
  readonly #requester: LeaseRequester;
  readonly #blocks: { from: number; readonly to: number }[] = [];
  /** How many more may be asked for. */
  #expected: number;
  #asked = false;
  #last = false;

  constructor(
    name: string,
    size: number,
    requester: LeaseRequester,
    expected = Number.POSITIVE_INFINITY,
  ) {
    this.#name = name;
    this.#size = size;
    this.#requester = requester;
    this.#expected = expected;
  }

  /** So many more indices will be taken for sure. */
  expect(count: number): void {
    this.#expected += count;
    this.#prefetchIfLow();
  }

  /** Asks for the first block before anybody needs it. */
  prefetch(): void {
    if (this.#asked || this.#last || this.#expected <= 0) return;
    this.#asked = true;
    this.#requester.request(this.#name, Math.min(this.#size, this.#expected));
  }

  granted(from: number, to: number, last: boolean): void {
    this.#asked = false;
    this.#last = last;
    this.#expected -= to - from;
    if (to > from) this.#blocks.push({ from, to });
  }

  take(): Taken {
    const block = this.#blocks[0];
    if (block === undefined) {
      if (this.#last) return "exhausted";
      this.prefetch();
      return "wait";
    }
    const index = block.from++;
    if (block.from === block.to) this.#blocks.shift();
    this.#prefetchIfLow();
    return index;
  }

  #prefetchIfLow(): void {
    const [block, next] = this.#blocks;
    if (block === undefined || (next === undefined && block.to - block.from < this.#size / 2))
      this.prefetch();
  }
}

const TICKET_BLOCKS_PER_CORE = 20;
const TICKET_BLOCK_MAX = 1_000;

/** Iterations that are shared by all users of all cores. */
export function ticketLease(
  iterations: number,
  cores: number,
  requester: LeaseRequester,
): IndexLease {
  const size = Math.ceil(iterations / (cores * TICKET_BLOCKS_PER_CORE));
  return new IndexLease(ITERATIONS_LEASE, Math.min(TICKET_BLOCK_MAX, Math.max(1, size)), requester);
}
