// (a) A prepared step: no function, the request is compiled once.

import { http, workflow } from "hyperscale";

export default workflow("prepared", { vus: 64, duration: "30m" }).step(
  "hello",
  http.get(process.env.BENCH_URL, { timeout: "20m" }),
);
