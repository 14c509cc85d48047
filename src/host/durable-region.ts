/** A small record on disk, for a process: carries out what the machine of two copies asks for. */

import { TwoCopies, type TwoCopiesEffect, type TwoCopiesInput } from "../core/base/two-copies.ts";
import type { DiskPort } from "./ports/disk.ts";

interface DurableRegionOptions {
  readonly disk: DiskPort;
  readonly region: string;
  /** What the record holds, for whoever has to decide when it cannot be read. */
  readonly holds: string;
  /** What an operator can do then: one sentence. */
  readonly remedy: string;
}

export class DurableRegion {
  readonly #options: DurableRegionOptions;
  readonly #copies: TwoCopies;
  /** What the disk held when it was opened; null on a fresh one. */
  readonly found: Uint8Array | null;

  private constructor(options: DurableRegionOptions, copies: TwoCopies, found: Uint8Array | null) {
    this.#options = options;
    this.#copies = copies;
    this.found = found;
  }

  /** Rejects with a sentence when the medium fails, or holds the region and no whole copy of it. */
  static async open(options: DurableRegionOptions): Promise<DurableRegion> {
    const copies = new TwoCopies();
    const end = await drive(options, copies, { kind: "open" });
    if (end.kind === "opened") return new DurableRegion(options, copies, end.found);
    throw unusable(options, "both copies are damaged");
  }

  /** For content that is whole and yet of no use: the sentence that ends the start. */
  refuse(detail: string): Error {
    return unusable(this.#options, detail);
  }

  /** Rejects when the medium did; the process must end then. */
  async save(payload: Uint8Array): Promise<void> {
    await drive(this.#options, this.#copies, { kind: "save", payload });
  }
}

/** What, where, and what to do. */
function unusable({ disk, region, holds, remedy }: DurableRegionOptions, detail: string): Error {
  return new Error(
    `${disk.nameOf(region)} holds ${holds} and cannot be used: ${detail}. ${remedy}`,
  );
}

type End = Extract<TwoCopiesEffect, { readonly kind: "opened" | "saved" | "unreadable" }>;

async function drive(
  options: DurableRegionOptions,
  copies: TwoCopies,
  input: TwoCopiesInput,
): Promise<End> {
  let effect = copies.step(input);
  for (;;) {
    if (effect.kind === "broken") {
      const name = options.disk.nameOf(options.region);
      throw new Error(`cannot keep ${name} on disk: ${effect.problem}`);
    }
    if (effect.kind === "opened" || effect.kind === "saved" || effect.kind === "unreadable") {
      return effect;
    }
    effect = copies.step(await carryOut(options, effect));
  }
}

function carryOut(
  { disk, region }: DurableRegionOptions,
  effect: Extract<TwoCopiesEffect, { readonly kind: "read" | "write" | "sync" }>,
): Promise<TwoCopiesInput> {
  return new Promise((resolve) => {
    const done = (kind: "written" | "synced") => (problem: string | null) =>
      resolve(problem === null ? { kind } : { kind: "failed", problem });
    if (effect.kind === "read") {
      disk.read(region, (bytes, problem) =>
        resolve(
          problem === null ? { kind: "contents", region: bytes } : { kind: "failed", problem },
        ),
      );
    } else if (effect.kind === "write")
      disk.write(region, effect.at, effect.bytes, done("written"));
    else disk.sync(region, done("synced"));
  });
}
