// Streams of events: one that ends, as chats do, and the beginning of one that does not.
//
//   SSE_URL=http://127.0.0.1:8080 hyperscale run examples/protocols/sse.ts

import { flow } from "hyperscalejs";
import { sse } from "hyperscalejs/sse";

const shop = sse.target(process.env["SSE_URL"] ?? "http://127.0.0.1:8080");
const few = shop.events("/few");
const many = shop.events("/many", { take: 3, timeout: "10s" });

export default flow(
  "events",
  { vus: 10, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    const ended = await step("few", few);
    check("some", () => ended.value.length > 0);
    const begun = await step("many", many);
    check("three", () => begun.value.length === 3);
  },
);
