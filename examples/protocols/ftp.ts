// Bills on an FTP server: each user leaves one and reads it back.
//
//   npm install basic-ftp
//   FTP_URL=ftp://shop:secret@127.0.0.1:21 hyperscale run examples/protocols/ftp.ts

import { flow } from "hyperscalejs";
import { ftp } from "hyperscalejs/ftp";

const files = ftp.target(process.env["FTP_URL"] ?? "ftp://127.0.0.1:21");

export default flow(
  "bills",
  { vus: 5, duration: "10s", thresholds: ["errors.rate < 1%"], gracefulStop: "30s" },
  async ({ check, step, user }) => {
    const path = `hyperscale-${user.id}.txt`;
    await step("bill", files.upload(path, `bill ${user.iteration}`));
    const read = await step("read", files.download(path));
    check("the same", () => read.value.toString() === `bill ${user.iteration}`);
  },
);
