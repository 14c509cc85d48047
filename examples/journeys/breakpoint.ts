// How many users does it bear? The load is doubled until a threshold breaks, then the gap is halved. For
// arrivals instead of users write `rate: { from: 50, to: 5_000 }`.

import { flow, http } from "hyperscalejs";

const api = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");
const seat = api.get("/seat");

export default flow(
  "breakpoint",
  {
    breakpoint: {
      vus: { from: 1, to: 32 },
      settle: "100ms",
      hold: "1s", // far too short for a real answer: hold every load for a minute or so
      precision: 0.2,
    },
    thresholds: ["errors.rate < 1%"],
  },
  async ({ step }) => {
    await step("seat", seat);
  },
);
