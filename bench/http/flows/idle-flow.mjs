// The idle users of idle.mjs, as users of a flow.

import { flow, http } from "hyperscalejs";

const hello = http.target(process.env.BENCH_URL).get("/");

export default flow(
  "idle flow",
  { vus: 50_000, duration: "30m", pacing: "20m", connections: "shared" },
  async ({ step }) => {
    await step("hello", hello);
  },
);
