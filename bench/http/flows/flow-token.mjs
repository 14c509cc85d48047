// (d) A journey as people write it: a login whose token goes into a header, a path with a value in it, and JSON that
// differs from call to call.

import { flow, http, route } from "hyperscalejs";

const target = http.target(process.env.BENCH_URL);

export default flow(
  "token, route and JSON",
  {
    vus: 64,
    duration: "30m",
    // Longer than a rotation keeps the process stopped.
    timeout: "20m",
    firstByteTimeout: "20m",
  },
  async ({ step, user }) => {
    const login = await step("login", target.post("/login", { json: { user: user.id } }));
    const me = target.with({ headers: { authorization: `Bearer ${login.json().token}` } });
    await step("order", me.get(route`/orders/${user.iteration}`));
    await step("buy", me.post("/orders", { json: { item: user.iteration, count: 2 } }));
  },
);
