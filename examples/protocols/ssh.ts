// Commands and files on another machine.
//
//   npm install ssh2
//   SSH_URL=ssh://shop:secret@127.0.0.1:22 hyperscale run examples/protocols/ssh.ts

import { flow } from "hyperscalejs";
import { ssh } from "hyperscalejs/ssh";

const host = ssh.target(process.env["SSH_URL"] ?? "ssh://root@127.0.0.1:22");

export default flow(
  "shop",
  { vus: 5, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step, user }) => {
    const said = await step("order", host.exec("echo ordered"));
    check("heard", () => said.value.stdout.toString().trim() === "ordered");
    await step("bill", host.put(`hyperscale-${user.id}.txt`, `bill ${user.iteration}`));
  },
);
