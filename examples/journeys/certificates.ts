// Mutual TLS: the server shows a certificate of its own authority, and every user one of its own.
// CERTIFICATES is a folder with ca.pem, and user-0.pem and user-0.key for each user.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { flow, http } from "hyperscalejs";

const folder = process.env["CERTIFICATES"] ?? "certificates";
const pem = (name: string) => readFileSync(join(folder, name), "utf8");

const bank = http.target(process.env["HYPERSCALE_TARGET"] ?? "https://127.0.0.1:8091", {
  ca: pem("ca.pem"),
  certificate: (user) => ({ cert: pem(`user-${user}.pem`), key: pem(`user-${user}.key`) }),
});
const account = bank.get<{ name: string }>("/account");

export default flow(
  "certificates",
  {
    vus: 3,
    iterationsPerVu: 8,
    thresholds: ["errors.rate < 1%", "checks.rate == 100%", "tls.p95 < 10s"],
  },
  async ({ step, check, user }) => {
    const mine = await step("account", account);
    check("known by the certificate", () => mine.json().name === `user-${user.id}`);
  },
);
