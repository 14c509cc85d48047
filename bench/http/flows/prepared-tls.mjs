// The prepared step over TLS. Like wrk, it accepts any certificate.

import { http, workflow } from "hyperscalejs";

export default workflow("prepared over TLS", {
  vus: 64,
  duration: "30m",
  insecure: true,
  // Longer than a rotation keeps the process stopped.
  timeout: "20m",
  firstByteTimeout: "20m",
}).step("hello", http.get(process.env.BENCH_URL));
