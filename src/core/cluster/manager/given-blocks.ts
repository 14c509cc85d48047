/**
 * Blocks of rows, iterations and numbers assigned to the cores of a job, each index once over all of them (T6). A core
 * has one numbered request per name at a time: a retry, also to a new leader, returns the same block. Superseded
 * requests are ignored.
 */

import { LeaseAllocator } from "../../load/execution/lease-allocator.ts";
import type { PhaseStep } from "../../load/execution/phase-types.ts";
import { NumberCounters } from "../../load/job/shared-values.ts";
import type { Submission } from "../messages.ts";
import { isBoolean, isText, isWhole, listOf, mapOf, record } from "./shapes.ts";

export type BlockStep = Extract<PhaseStep, { kind: "grant" | "numbers" }>;

/** Indices [from, to); `last`: there are no more. */
interface Block {
  readonly request: number;
  readonly from: number;
  readonly to: number;
  readonly last: boolean;
}

export interface BlocksSnapshot {
  readonly leases: readonly { readonly workflow: string; readonly next: Next }[];
  readonly numbers: Next;
  readonly given: readonly (Block & { readonly key: string })[];
}

type Next = Readonly<Record<string, number>>;

const isNext = mapOf(isWhole);
export const isBlocks = record({
  leases: listOf(record({ workflow: isText, next: isNext })),
  numbers: isNext,
  given: listOf(
    record({ key: isText, request: isWhole, from: isWhole, to: isWhole, last: isBoolean }),
  ),
});

/** Bytes of an index, a field name and a number, beside the name of a block. */
const ENTRY_BYTES = 128;

export class GivenBlocks {
  readonly #leases: ReadonlyMap<string, LeaseAllocator>;
  readonly #numbers: NumberCounters;
  /** Last block of each core and name. */
  readonly #given: Map<string, Block>;

  constructor(manifests: Submission["manifests"], snapshot: BlocksSnapshot | null = null) {
    const stands = new Map(snapshot?.leases.map(({ next, workflow }) => [workflow, next]));
    this.#leases = new Map(
      manifests.map((manifest) => {
        const { name } = manifest;
        return [name, new LeaseAllocator(manifest, stands.get(name) ?? {})];
      }),
    );
    const place = manifests.find(({ part }) => part !== undefined)?.part?.index ?? 0;
    this.#numbers = new NumberCounters(snapshot?.numbers ?? {}, place);
    this.#given = new Map(snapshot?.given.map(({ key, ...block }) => [key, block]));
  }

  /** Bytes by which the state grows when the block is assigned. */
  bytesFor(step: BlockStep): number {
    return this.#given.has(keyOf(step)) ? 0 : 2 * (ENTRY_BYTES + 3 * keyOf(step).length);
  }

  /** Assigns a block; false when there is no such workflow. */
  give(step: BlockStep): boolean {
    const last = this.#given.get(keyOf(step));
    if (last !== undefined && last.request >= requestOf(step)) return true;
    const block =
      step.kind === "numbers"
        ? { ...this.#numbers.take(step.name, step.count), last: false }
        : this.#leases.get(step.workflow)?.grant(step.name, step.size);
    if (block === undefined) return false;
    this.#given.set(keyOf(step), { request: requestOf(step), ...block });
    return true;
  }

  /** The block that answers this request; null when the request was superseded. */
  of(step: BlockStep): Block | null {
    const block = this.#given.get(keyOf(step));
    return block?.request === requestOf(step) ? block : null;
  }

  snapshot(): BlocksSnapshot {
    return {
      leases: [...this.#leases].map(([workflow, { next }]) => ({ workflow, next })),
      numbers: this.#numbers.next,
      given: [...this.#given].map(([key, block]) => ({ key, ...block })),
    };
  }
}

function keyOf(step: BlockStep): string {
  const of = step.kind === "grant" ? step.execution : "numbers";
  return `${of} ${step.core} ${step.name}`;
}

function requestOf(step: BlockStep): number {
  return step.kind === "grant" ? step.request : step.id;
}
