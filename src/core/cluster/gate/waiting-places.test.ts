import { expect, it } from "vitest";
import type { JobId } from "../../ledger/job/job-id.ts";
import { initialState } from "../../ledger/job/job-state.ts";
import { WaitingPlaces } from "./waiting-places.ts";

it("are sorted once per change, however often they are read", () => {
  const jobs = ["c", "a", "b"].map((id) => ({ state: initialState(id as JobId) }));
  let reads = 0;
  const places = new WaitingPlaces({
    openJobs: () => {
      reads++;
      return jobs.map(({ state }) => ({ state, primary: null, view: 0 }));
    },
  });
  const positions = () => jobs.map(({ state }) => places.of(state));
  expect([positions(), positions(), reads]).toEqual([
    ...[0, 1].map(() => ["position 3 of 3", "position 1 of 3", "position 2 of 3"]),
    1,
  ]);
  jobs.push({ state: initialState("0" as JobId) });
  // An unknown job counts as a change.
  expect(positions().at(-1)).toBe("position 1 of 4");
  jobs.shift();
  places.changed();
  expect([positions(), reads]).toEqual([
    ["position 2 of 3", "position 3 of 3", "position 1 of 3"],
    3,
  ]);
  const ended = { ...initialState("a" as JobId), status: "COMPLETED" } as const;
  expect(places.of(ended)).toBeNull();
});
