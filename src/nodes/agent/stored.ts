/** The small records of a member process on real files: executes its machine's disk effects. */

import type { Region, RegionEffect, RegionResult } from "../../core/cluster/node/member-barrier.ts";
import type { DiskPort } from "../../host/ports/disk.ts";

const ABOUT: Readonly<Record<Region, { readonly holds: string; readonly remedy: string }>> = {
  swim: {
    holds: "the highest incarnation that this member has announced",
    remedy:
      "Restore the file from a copy, or move it away: the member then rises above what the others " +
      "remember of it.",
  },
  vote: {
    holds: "the term and vote of this member",
    remedy:
      "Restore the file from a copy. Without one this name must not vote again: start the member " +
      "under a new name, with that name in its place in --voters of all.",
  },
};

/** Error that aborts the start: the problem, its location, and the remedy. */
export function unusable(disk: DiskPort, region: Region, detail: string): Error {
  const { holds, remedy } = ABOUT[region];
  return new Error(
    `${disk.nameOf(region)} holds ${holds} and cannot be used: ${detail}. ${remedy}`,
  );
}

/** Calls `done` with the result, once. */
export function carryOut(
  disk: DiskPort,
  effect: RegionEffect,
  done: (result: RegionResult) => void,
): void {
  const { region } = effect;
  const failed = (problem: string): void =>
    done({ kind: "failed", problem: `${disk.nameOf(region)}: ${problem}` });
  const ended = (kind: "written" | "synced") => (problem: string | null) =>
    problem === null ? done({ kind }) : failed(problem);
  if (effect.kind === "readRegion") {
    disk.read(region, (bytes, problem) => {
      if (problem === null) done({ kind: "contents", region: bytes });
      else failed(problem);
    });
  } else if (effect.kind === "writeRegion") {
    disk.write(region, effect.at, effect.bytes, ended("written"));
  } else disk.sync(region, ended("synced"));
}
