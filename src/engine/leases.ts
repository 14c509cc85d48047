/**
 * Indices leased in blocks from the manager, so that iterations and data rows are handed out exactly once over all
 * cores. The next block is requested before this one is used up; when the loop is faster than the manager, users wait
 * for the block instead of taking an index twice, and later blocks are twice as large.
 *
 * Where iterations end the load, a core requests no more rows than it has iterations: a row unused on one core would be
 * missing on another.
 */

import { ITERATIONS_LEASE } from "../core/load/job/core-messages.ts";

export interface LeaseRequester {
  request(name: string, size: number): void;
}

/** An index; or none now but perhaps later; or none ever. */
type Taken = number | "wait" | "exhausted";

export class IndexLease {
  readonly #name: string;
  #size: number;
  readonly #sizeMax: number;
  readonly #requester: LeaseRequester;
  readonly #blocks: { from: number; readonly to: number }[] = [];
  /** How many more may be requested. */
  #expected: number;
  #asked = false;
  #last = false;
  /** A user waits for the requested block, which is not the first. */
  #ranDry = false;
  #granted = false;

  constructor(
    name: string,
    { size, sizeMax }: BlockSizes,
    requester: LeaseRequester,
    expected = Number.POSITIVE_INFINITY,
  ) {
    this.#name = name;
    this.#size = size;
    this.#sizeMax = sizeMax;
    this.#requester = requester;
    this.#expected = expected;
  }

  /** Announces indices that will be taken for sure. */
  expect(count: number): void {
    this.#expected += count;
    this.#prefetchIfLow();
  }

  /** Requests the first block before it is needed. */
  prefetch(): void {
    if (this.#asked || this.#last || this.#expected <= 0) return;
    this.#asked = true;
    this.#requester.request(this.#name, Math.min(this.#size, this.#expected));
  }

  granted(from: number, to: number, last: boolean): void {
    this.#asked = false;
    this.#last = last;
    this.#granted = true;
    if (this.#ranDry) this.#size = Math.min(this.#sizeMax, this.#size * 2);
    this.#ranDry = false;
    this.#expected -= to - from;
    if (to > from) this.#blocks.push({ from, to });
  }

  take(): Taken {
    const block = this.#blocks[0];
    if (block === undefined) {
      if (this.#last) return "exhausted";
      this.prefetch();
      this.#ranDry = this.#granted && this.#asked;
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

/** Blocks per core that share the total, so that no core lacks what is unused on another… */
const BLOCKS_PER_CORE = 20;
/** …and the minimum when larger blocks are needed to keep up. */
const BLOCKS_PER_CORE_MIN = 4;
/** A killed core loses at most two blocks of this size. */
const BLOCK_MAX = 4_096;

interface BlockSizes {
  readonly size: number;
  readonly sizeMax: number;
}

/** Blocks for `total` indices over all cores; `size` is that of the first, at most `first`. */
export function blockSizes(total: number, cores: number, first: number): BlockSizes {
  const per = (blocks: number): number => Math.max(1, Math.ceil(total / (cores * blocks)));
  const sizeMax = Math.min(BLOCK_MAX, per(BLOCKS_PER_CORE_MIN));
  return { size: Math.min(first, per(BLOCKS_PER_CORE), sizeMax), sizeMax };
}

const TICKET_BLOCK_FIRST_MAX = 1_000;

/** Iterations shared by all users of all cores. */
export function ticketLease(
  iterations: number,
  cores: number,
  requester: LeaseRequester,
): IndexLease {
  const sizes = blockSizes(iterations, cores, TICKET_BLOCK_FIRST_MAX);
  return new IndexLease(ITERATIONS_LEASE, sizes, requester);
}
