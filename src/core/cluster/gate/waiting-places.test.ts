import { expect, it } from "vitest";
import type { JobId } from "../../ledger/job/job-id.ts";
import { initialState } from "../../ledger/job/job-state.ts";
import { WaitingPlaces } from "./waiting-places.ts";

it("are sorted once per change, however often they are read", () => {
  const jobs = ["c", "a", "b"].map((id) => ({ state: initialState(id as JobId) }));
  let looks = 0;
  const places = new WaitingPlaces({
    openJobs: () => {
      looks++;
      return jobs.map(({ state }) => ({ state, primary: null, view: 0 }));
    },
  });
  const told = () => jobs.map(({ state }) => places.of(state));
  expect([told(), told(), looks]).toEqual([
    ...[0, 1].map(() => ["position 3 of 3", "position 1 of 3", "position 2 of 3"]),
    1,
  ]);
  jobs.push({ state: initialState("0" as JobId) });
  // An unknown job counts as a change.
  expect(told().at(-1)).toBe("position 1 of 4");
  jobs.shift();
  places.changed();
  expect([told(), looks]).toEqual([["position 2 of 3", "position 3 of 3", "position 1 of 3"], 3]);
  const ended = { ...initialState("a" as JobId), status: "COMPLETED" } as const;
  expect(places.of(ended)).toBeNull();
});
