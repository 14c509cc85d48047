// A cache in front of something slow: read it, fill it on a miss.
//
//   MEMCACHED_URL=memcached://127.0.0.1:11211 hyperscale run examples/protocols/memcached.ts

import { flow } from "hyperscalejs";
import { memcached } from "hyperscalejs/memcached";

const cache = memcached.target(process.env["MEMCACHED_URL"] ?? "memcached://127.0.0.1:11211");

export default flow(
  "cache",
  { vus: 20, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ pick, step }) => {
    const sku = pick(["tea", "coffee", "cocoa"]);
    const cached = await step("cached", cache.get(`price:${sku}`));
    if (cached.value === null) await step("store", cache.set(`price:${sku}`, "12", { ttl: "1s" }));
  },
);
