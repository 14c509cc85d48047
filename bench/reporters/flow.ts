/** 50 steps that wait as calls do: from half a millisecond to half a second, most of them some 10 ms. */

import { measure, workflow } from "hyperscalejs";

const STEPS = 50;
/** A call takes some 16 ms: enough users for 100,000 of them per second. */
const USERS = 1_700;

const waited = (): Promise<void> => {
  // A log-normal distribution, by the sum of twelve.
  let sum = -6;
  for (let draw = 0; draw < 12; draw++) sum += Math.random();
  return new Promise((resolve) => setTimeout(resolve, Math.min(500, 10 * Math.exp(sum))));
};

const first = workflow("many steps", { vus: USERS, duration: "30s" }).step("step 1", () =>
  measure(waited),
);

export default Array.from({ length: STEPS - 1 }, (_, at) => `step ${at + 2}`).reduce(
  (built, name, at) => built.step(name, { after: [`step ${at + 1}`] }, () => measure(waited)),
  // Generated names have no types of their own.
  first as unknown as Chain,
);

interface Chain {
  step(name: string, options: { readonly after: readonly string[] }, run: () => unknown): Chain;
}
