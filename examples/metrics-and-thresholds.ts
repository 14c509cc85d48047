// Figures of your own, and what must hold. A threshold can look at one step, one tag, a custom metric
// or the last seconds only, and can end the run as soon as it fails.

import { counter, rate, trend, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";

const ordersPlaced = counter("orders_placed");
const basketSize = trend("basket_size");
const cacheHits = rate("cache_hits");

export default workflow("shop", {
  vus: 10,
  duration: "10s",
  think: { min: "10ms", max: "30ms" },
  metrics: [basketSize, cacheHits, ordersPlaced],
  thresholds: [
    "latency{area=catalogue}.p95 < 500ms",
    "basket_size.p90 <= 9",
    "cache_hits.rate > 50%",
    "checks.rate >= 99%",
    // Every tenth "unsteady" fails on purpose; half of the last two seconds would be too much.
    { threshold: "errors.rate over 2s < 50%", abortOnFail: true, after: "1s" },
  ],
})
  .step("list", { tags: { area: "catalogue" } }, async ({ http, user }) => {
    const response = await http.get(`${target}/json`);
    cacheHits.add(user.iteration > 0);
    return response;
  })
  .step("unsteady", ({ http }) => http.get(`${target}/fail?rate=0.1&status=503`))
  .step("checkout", { after: ["list"] }, async ({ http, user }) => {
    const items = (user.iteration % 9) + 1;
    const response = await http.post(`${target}/echo`, { json: { items } });
    if (response.ok) {
      ordersPlaced.add(1, { size: items > 5 ? "large" : "small" });
      basketSize.add(items);
    }
    return response;
  })
  .check("checkout echoed", ({ results }) => results.checkout.status === 200)
  // The same without a function in a step: a number per iteration.
  .metric("answer_bytes", "trend", ({ results }) => results.checkout.bytesIn)
  // Behind the steps the editor knows their names.
  .thresholds("latency{step=checkout}.p95 < 500ms");
