// Two flows that share one load: 95 of 100 iterations browse, 5 buy. Each flow is shown on its own.
//   hyperscale demo-target   and   hyperscale run examples/mix.ts
// One of them alone, once:       hyperscale run examples/mix.ts --only buy --trace

import { counter, flow, http, mix, route } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const shop = http.target(target);
const home = shop.get("/");
const bought = counter("bought");

export const browse = flow("browse", async ({ chance, pause, step }) => {
  await step("home", home);
  if (chance(0.3)) await step("slow page", shop.get("/slow?ms=5"));
  await pause("5ms", "20ms");
});

export const buy = flow("buy", async ({ check, group, pick, poll, step }) => {
  const login = await step(
    "login",
    shop.post<{ token: string }>("/login", { json: { user: "ada" } }),
  );
  const me = shop.with({ headers: { authorization: `Bearer ${login.json().token}` } });
  await group("checkout", async () => {
    const found = await step("user", me.get<{ id: number }>(route`/users/${pick([1, 2, 3])}`));
    check("has an id", () => found.json().id > 0);
    const done = await poll("status", () => home, {
      until: (response) => response.status === 200,
      every: "50ms",
      within: "5s",
    });
    if (done !== undefined) bought.add(1);
  });
});

export default mix([browse.weight(95), buy.weight(5)], {
  rate: "100/s",
  duration: "10s",
  metrics: [bought],
  thresholds: ["latency.p95 < 1s", "buy.duration{group=checkout}.p99 < 5s", "bought.count > 1"],
});
