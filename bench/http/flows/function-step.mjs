// (b) The usual form: an async function per step, and a check on its answer.

import { workflow } from "hyperscalejs";

const url = process.env.BENCH_URL;

export default workflow("function step", {
  vus: 64,
  duration: "30m",
  // Longer than a rotation keeps the process stopped.
  timeout: "20m",
  firstByteTimeout: "20m",
})
  .step("hello", async ({ http }) => await http.get(url))
  .check("answered", ({ results }) => results.hello.status === 200);
