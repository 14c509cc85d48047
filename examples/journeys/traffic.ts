// Traffic of a shop: 70 of 100 visits browse, 25 search, 5 buy. One load, three flows, each with its own
// figures and limits.

import { feed, flow, http, mix, route } from "hyperscalejs";

const shop = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");
const list = shop.get("/items?page=1");

export const browse = flow("browse", async ({ step, pick }) => {
  await step("list", list);
  await step("item", shop.get(route`/items/${pick([1, 2, 3, 5, 8])}`));
});

const words = feed.rows(["tea", "cup", "kettle"], { order: "random" });

export const search = flow("search", { data: { word: words } }, async ({ step, check, data }) => {
  const found = await step(
    "search",
    shop.get<{ found: string }>("/search", { params: { q: data.word } }),
  );
  check("found what was asked for", () => found.json().found === data.word);
});

export const buy = flow("buy", async ({ step, group }) => {
  await group("express", async () => {
    await step("cart", shop.post("/cart", { json: { item: 7, quantity: 1 } }), { required: true });
    await step("order", shop.post("/orders"));
  });
});

export default mix([browse.weight(70), search.weight(25), buy.weight(5)], {
  vus: 4,
  iterations: 200,
  thresholds: ["errors.rate < 1%", "iterations.count >= 200", "buy.errors.count == 0"],
});
