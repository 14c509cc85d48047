// Log in, fill a cart, pay. The login form has a hidden field that must go back, its answer redirects, and
// the session is a cookie that each user keeps by itself.

import { counter, flow, http, route } from "hyperscalejs";

const shop = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");
const loginPage = shop.get("/login");
const paid = counter("paid");

export default flow(
  "checkout",
  {
    vus: 4,
    iterations: 40,
    required: true, // a failed call ends the iteration: nobody pays for a cart that was never filled
    thresholds: [
      "errors.rate < 1%",
      "latency{step=pay}.p95 < 10s", // generous, because it must hold on any machine
      "duration{group=checkout}.p95 < 30s",
      "paid.count >= 40",
    ],
  },
  async ({ step, check, group, pause, pick }) => {
    const page = await step("login page", loginPage);
    const csrf = page.find("input[name=csrf]")?.value;
    const account = await step(
      "log in",
      shop.post("/login", { form: { csrf, user: "ada" }, redirects: 1 }),
    );
    check("greeted by name", () => account.text().includes("ada"));

    await group("checkout", async () => {
      const item = pick([3, 14, 15]);
      await step("look at it", shop.get(route`/items/${item}`));
      await pause("5ms", "20ms");
      await step("add to cart", shop.post("/cart", { json: { item, quantity: 2 } }));
      const order = await step("pay", shop.post<{ id: number; items: number }>("/orders"));
      check("two of them", () => order.json().items === 2);
      paid.add(1);
    });
  },
);
