/** The load of the rows: each executor core sends its own process id, so that the target distinguishes them. */

import { workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const path = `${target}/${process.pid}`;

export default workflow("cluster bench", { vus: 2, duration: "5s", gracefulStop: "5s" }).step(
  "core",
  ({ http }) => http.get(path),
);
