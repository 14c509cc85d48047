// Bills by mail, each with an attachment.
//
//   npm install nodemailer
//   SMTP_URL=smtp://127.0.0.1:25 hyperscale run examples/protocols/smtp.ts

import { flow } from "hyperscalejs";
import { smtp } from "hyperscalejs/smtp";

const relay = smtp.target(process.env["SMTP_URL"] ?? "smtp://127.0.0.1:25");
const bill = relay.send({
  from: "shop@shop.test",
  to: "ada@shop.test",
  subject: "Your bill",
  text: "It is attached.",
  attachments: [{ filename: "bill.csv", content: "tea,12\ncoffee,9\n" }],
});

export default flow(
  "mail",
  { vus: 5, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step }) => {
    const sent = await step("bill", bill);
    check("taken", () => sent.value.accepted.length === 1);
  },
);
