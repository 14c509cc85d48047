/** Spreads the virtual users of a workflow over its threads. */

import { assert } from "../../base/assert.ts";

/**
 * One entry per thread, summing to `vus`: each gets the floor, the last also the rest (PROV-1). Fewer users than
 * threads use only as many threads as there are users (PROV-4).
 */
export function provision(vus: number, threads: number): number[] {
  assert(Number.isSafeInteger(vus) && vus >= 1, "a workflow has at least one virtual user");
  assert(Number.isSafeInteger(threads) && threads >= 1, "a workflow has at least one thread");
  const used = Math.min(threads, vus);
  const each = Math.floor(vus / used);
  const list = new Array<number>(used).fill(each);
  list[used - 1] = each + (vus % used);
  return list;
}
