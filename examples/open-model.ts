// An open model: 200 iterations begin every second, whether or not the server keeps up, as real
// visitors do. Latency counts from the moment each was due, so a stall of the server is seen in full.
// Try it: while this runs,  hyperscale ping "http://127.0.0.1:8089/stall?ms=1000"

import { http, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";

export default workflow("open-model", {
  rate: 200,
  duration: "10s",
  // When so many users are busy, arrivals wait for one; the waiting is part of their latency.
  maxVus: 400,
  warmup: "1s",
  thresholds: ["latency.p99 < 500ms", "errors.rate < 1%"],
})
  .step("json", http.get(`${target}/json`))
  .check("json answered", ({ results }) => results.json.status === 200);
