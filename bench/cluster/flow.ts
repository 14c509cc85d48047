/** The load of the rows: each executor core asks under its own process number, so that the target tells them apart. */

import { workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const path = `${target}/${process.pid}`;

export default workflow("cluster bench", { vus: 2, duration: "5s", gracefulStop: "5s" }).step(
  "core",
  ({ http }) => http.get(path),
);
