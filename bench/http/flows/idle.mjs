// Virtual users that wait: their first iteration is due after the measurement is over.

import { http, workflow } from "hyperscale";

export default workflow("idle", { vus: 50_000, duration: "30m", startDelay: "20m" }).step(
  "hello",
  http.get(process.env.BENCH_URL),
);
