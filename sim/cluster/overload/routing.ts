/** Routing of gates that measure their datacenters every second, each sample up to 30 % too slow. (AD-36) */

import { Random } from "../../../src/core/base/random.ts";
import { RoundTrips } from "../../../src/core/cluster/routing/round-trips.ts";
import { Router } from "../../../src/core/cluster/routing/router.ts";
import { atLeast, atMost, type Figure } from "./figure.ts";

const EVERY_MS = 1_000;
const SETTLED_MS = 300_000;
const HOUR_MS = 3_600_000;
const NOISE = 0.3;

/** The first choice of each second. */
function choices(random: Random, tripsMs: readonly number[], forMs: number): readonly number[] {
  const router = new Router();
  const trips = tripsMs.map((ms, at) => ({ ms, name: `dc${at}`, measured: new RoundTrips() }));
  const firsts: number[] = [];
  for (let now = 0; now < forMs; now += EVERY_MS) {
    for (const { measured, ms } of trips) measured.record(ms * (1 + NOISE * random.float()), now);
    const candidates = trips.map(({ measured, name }) => ({
      ...({ name, health: "healthy", cores: 100, coresFree: 100, jobsQueued: 0 } as const),
      ...{ managers: 3, managersAway: 0, distance: measured.distance(now) },
    }));
    const [first = ""] = router.route(candidates, [], now).names;
    firsts.push(trips.findIndex(({ name }) => name === first));
  }
  return firsts;
}

export const routing: Figure = (scale) => {
  const random = new Random("routing");
  const gates = Math.max(50, Math.round(400 * scale));
  let near = 0;
  for (let gate = 0; gate < gates; gate++) {
    const tripsMs = Array.from({ length: 4 }, () => 5 + random.float() * 245);
    const chosen = choices(random, tripsMs, SETTLED_MS).at(-1) ?? 0;
    if ((tripsMs[chosen] ?? 0) <= 1.1 * Math.min(...tripsMs)) near++;
  }
  let flips = 0;
  for (let gate = 0; gate < Math.max(3, Math.round(30 * scale)); gate++) {
    const tripsMs = Array.from({ length: 4 }, () => 20 + random.float() * 30);
    const calm = choices(random, tripsMs, SETTLED_MS + HOUR_MS).slice(SETTLED_MS / EVERY_MS);
    flips = Math.max(flips, calm.filter((one, at) => at > 0 && one !== calm[at - 1]).length);
  }
  return [
    atLeast("within 10 % of the best round trip after 5 min", near / gates, 0.95),
    atMost("changes in a calm hour, of the gate with the most", flips, 2, 0),
  ];
};
