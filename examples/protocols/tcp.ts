// Lines over plain TCP: any server that answers lines with lines, here one that knows PING.
//
//   TCP_URL=tcp://127.0.0.1:6379 hyperscale run examples/protocols/tcp.ts

import { flow } from "hyperscalejs";
import { tcp } from "hyperscalejs/tcp";

const line = tcp.target(process.env["TCP_URL"] ?? "tcp://127.0.0.1:6379");
const ping = line.request("PING\r\n", { answer: { until: "\r\n" }, timeout: "2s" });

export default flow(
  "lines",
  { vus: 20, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    const answer = await step("ping", ping);
    check("an answer", () => answer.value.toString() === "+PONG\r\n");
  },
);
