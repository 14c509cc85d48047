// A cache in front of something slow: read it, fill it on a miss, count the misses.
//
//   REDIS_URL=redis://127.0.0.1:6379 hyperscale run examples/protocols/redis.ts

import { flow } from "hyperscalejs";
import { redis } from "hyperscalejs/redis";

const cache = redis.target(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");

export default flow(
  "cache",
  { vus: 20, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, pick, step }) => {
    const sku = pick(["tea", "coffee", "cocoa"]);
    const cached = await step("cached", cache.get(`price:${sku}`));
    if (cached.value !== null) {
      check("a price", () => Number(cached.value) > 0);
      return;
    }
    // One write to the server, one measured call.
    const store = cache.set(`price:${sku}`, "12", { ttl: "200ms" });
    await step("store", cache.pipeline(store, cache.incr("misses")));
  },
);
