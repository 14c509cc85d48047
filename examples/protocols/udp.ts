// Datagrams, and the ones that answer them: here a question that every DNS server understands.
//
//   UDP_URL=udp://127.0.0.1:53 hyperscale run examples/protocols/udp.ts

import { flow } from "hyperscalejs";
import { udp } from "hyperscalejs/udp";

const server = udp.target(process.env["UDP_URL"] ?? "udp://127.0.0.1:53");
const question = Buffer.from("00070100000100000000000005666978656404746573740000010001", "hex");

export default flow(
  "datagrams",
  { rate: 200, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    const answer = await step("ask", server.request(question, { timeout: "2s" }));
    check("its number", () => answer.value.readUInt16BE(0) === 7);
  },
);
