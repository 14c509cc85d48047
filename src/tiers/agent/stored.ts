/**
 * What an agent keeps on disk: its incarnation, and a voter's term and vote. A file that is there and
 * cannot be used ends the start with a sentence: what was promised from it is not known any more.
 */

import { incarnation } from "../../core/base/ids.ts";
import { decodeVote, NO_VOTE } from "../../core/cluster/election/durable-vote.ts";
import type { DurableVote } from "../../core/cluster/election/types.ts";
import { decodeCeiling } from "../../core/cluster/swim/durable-ceiling.ts";
import { DurableRegion } from "../../host/durable-region.ts";
import { FileDisk } from "../../host/file-disk.ts";

const INCARNATION = {
  region: "swim",
  holds: "the highest incarnation that this member has told",
  remedy:
    "Restore the file from a copy, or move it away: the member then rises above what the others " +
    "remember of it.",
};
const VOTE = {
  region: "vote",
  holds: "the term and vote of this member",
  remedy:
    "Restore the file from a copy. Without one this name must not vote again: start the member " +
    "under a new name, with that name in its place in --voters of all.",
};

export interface Stored {
  readonly disk: FileDisk;
  readonly incarnation: DurableRegion;
  readonly ceiling: ReturnType<typeof incarnation>;
  /** Null for members that do not vote. */
  readonly vote: { readonly region: DurableRegion; readonly found: DurableVote } | null;
}

/** Rejects with a sentence that says what, where, and what to do. */
export async function openStored(directory: string, votes: boolean): Promise<Stored> {
  const disk = new FileDisk(directory);
  const region = await DurableRegion.open({ disk, ...INCARNATION });
  const ceiling = region.found === null ? incarnation(0) : decodeCeiling(region.found);
  if (typeof ceiling === "string") throw region.refuse(ceiling);
  return { disk, incarnation: region, ceiling, vote: votes ? await openVote(disk) : null };
}

async function openVote(disk: FileDisk): Promise<NonNullable<Stored["vote"]>> {
  const region = await DurableRegion.open({ disk, ...VOTE });
  const found = region.found === null ? NO_VOTE : decodeVote(region.found);
  if (typeof found === "string") throw region.refuse(found);
  return { region, found };
}
