// (a) A prepared step: no function, the request is compiled once.

import { http, workflow } from "hyperscalejs";

export default workflow("prepared", {
  vus: 64,
  duration: "30m",
  // Longer than a rotation keeps the process stopped.
  timeout: "20m",
  firstByteTimeout: "20m",
}).step("hello", http.get(process.env.BENCH_URL));
