// Virtual users that wait: each has sent one request, over a shared pool of connections, and its next iteration is due
// after the measurement is over.

import { http, workflow } from "hyperscalejs";

export default workflow("idle", {
  vus: 50_000,
  duration: "30m",
  pacing: "20m",
  connections: "shared",
}).step("hello", http.get(process.env.BENCH_URL));
