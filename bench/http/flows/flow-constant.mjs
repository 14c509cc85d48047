// (c) A flow of three constant calls: its body and a promise for each call.

import { flow, http } from "hyperscalejs";

const target = http.target(process.env.BENCH_URL);
const home = target.get("/");
const list = target.get("/items");
const item = target.get("/items/7");

export default flow(
  "three constant calls",
  {
    vus: 64,
    duration: "30m",
    // Longer than a rotation keeps the process stopped.
    timeout: "20m",
    firstByteTimeout: "20m",
  },
  async ({ step }) => {
    await step("home", home);
    await step("list", list);
    await step("item", item);
  },
);
