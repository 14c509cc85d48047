// A shop in real browsers: pages with their web vitals, a form, a click.
//
//   npm install playwright-core && npx playwright-core install chromium
//   BROWSER_URL=http://127.0.0.1:8080 hyperscale run examples/protocols/browser.ts

import { flow, trend } from "hyperscalejs";
import { browser } from "hyperscalejs/browser";

const shop = browser.target(process.env["BROWSER_URL"] ?? "http://127.0.0.1:8080");
const largestPaint = trend("lcp");

export default flow(
  "visit",
  { vus: 2, duration: "30s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    const home = await step("home", shop.goto("/"));
    const { lcpMs = null } = home.value.vitals ?? {};
    if (lcpMs !== null) largestPaint.add(lcpMs);
    await step("wish", shop.fill("input[name=q]", "shoes"));
    const found = await step("search", shop.click("text=Search", { navigates: true }));
    check("found", () => found.value.address.includes("q=shoes"));
  },
);
