// Virtual users in stages: up, hold, up to a peak, down. Each stage is a straight line from where
// the one before ended. For arrivals per second instead of users, see `rateStages`.

import { http, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";

export default workflow("stages", {
  stages: [
    { duration: "3s", vus: 10 },
    { duration: "4s", vus: 10 },
    { duration: "1s", vus: 40 },
    { duration: "2s", vus: 0 },
  ],
  // One iteration per user and 50 ms, however fast the server answers.
  pacing: "50ms",
  thresholds: ["errors.rate < 1%"],
}).step("home", http.get(`${target}/`));
