import { expect, it } from "vitest";
import { replayLine } from "./replay.ts";

const DEFAULTS = { gates: "3", workers: "2", duration: "25", away: "8", profile: "dc" };

it("names the fault and the cluster where they differ from the defaults", () => {
  const chosen = { rounds: 3, seed: 42 };
  expect(replayLine({ ...DEFAULTS }, DEFAULTS, chosen)).toBe(
    "npm run chaos:cluster -- --rounds 3 --seed 42",
  );
  const given = { only: "kill worker", gates: "1", workers: "4", away: "20", logs: "here" };
  expect(replayLine({ ...DEFAULTS, ...given }, DEFAULTS, chosen)).toBe(
    'npm run chaos:cluster -- --rounds 3 --seed 42 --only "kill worker" --gates 1 --workers 4 --away 20',
  );
  expect(replayLine({ ...DEFAULTS, pressure: true }, DEFAULTS, chosen)).toBe(
    "npm run chaos:pressure -- --rounds 3 --seed 42",
  );
});
