/**
 * The order of test files: those that start processes and wait for them first, the small ones of one room last, so
 * that the end of a run is not one long file beside idle workers. Within both as vitest orders them.
 */

import type { TestSequencer, TestSpecification, Vitest } from "vitest/node";
import { BaseSequencer } from "vitest/node";

const SLOW = /^\/(sim|test)\//;

export default class SlowFirst implements TestSequencer {
  readonly #base: BaseSequencer;
  readonly #root: string;

  constructor(context: Vitest) {
    this.#base = new BaseSequencer(context);
    this.#root = context.config.root;
  }

  shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    return this.#base.shard(files);
  }

  async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await this.#base.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean =>
      SLOW.test(moduleId.slice(this.#root.length));
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}
