// Names looked up, at a steady rate.
//
//   DNS_URL=dns://127.0.0.1:53 hyperscale run examples/protocols/dns.ts

import { flow } from "hyperscalejs";
import { dns } from "hyperscalejs/dns";

const names = dns.target(process.env["DNS_URL"] ?? "dns://127.0.0.1:53");
const query = names.query("fixed.test", "A", { timeout: "2s" });

export default flow(
  "names",
  { rate: 200, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    const answer = await step("look up", query);
    check("an address", () => answer.value.answers.length > 0);
  },
);
