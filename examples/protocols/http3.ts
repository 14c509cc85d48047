// Requests over HTTP/3. Experimental.
//
//   npm install @currentspace/http3
//   HTTP3_URL=https://127.0.0.1:8443 HTTP3_INSECURE=1 hyperscale run examples/protocols/http3.ts

import { flow } from "hyperscalejs";
import { http3 } from "hyperscalejs/http3";

const shop = http3.target(process.env["HTTP3_URL"] ?? "https://127.0.0.1:8443", {
  insecure: process.env["HTTP3_INSECURE"] === "1",
});
const home = shop.get("/");
const order = shop.post("/orders", { body: { item: 7 } });

export default flow(
  "shop",
  { vus: 5, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    await step("home", home);
    const placed = await step("order", order);
    check("taken", () => placed.value.status === 200);
  },
);
