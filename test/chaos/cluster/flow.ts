/** The job of the rounds: users that take one row of a feed after the other, each row once. */

import { feed, http, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
/** More than the users can take in any round. */
const ROWS = 200_000;

export default workflow("rounds", {
  vus: 12,
  duration: "25s",
  think: { min: "30ms", max: "90ms" },
  gracefulStop: "60s",
})
  .data(
    "row",
    feed.rows(
      Array.from({ length: ROWS }, (_, at) => at),
      { order: "once" },
    ),
  )
  .step("row", ({ data, http }) => http.get(`${target}/row/${data.row}`))
  .step("plain", http.get(`${target}/plain`));
