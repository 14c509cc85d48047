// One journey over three systems: the page of a shop, the price from a cache, the order in a database.
//
//   SHOP_URL=http://127.0.0.1:8089 REDIS_URL=redis://127.0.0.1:6379 \
//     DATABASE_URL=postgres://shop:secret@127.0.0.1:5432/shop hyperscale run examples/protocols/several.ts

import { flow, http } from "hyperscalejs";
import { postgres } from "hyperscalejs/postgres";
import { redis } from "hyperscalejs/redis";

const shop = http.target(process.env["SHOP_URL"] ?? "http://127.0.0.1:8089");
const cache = redis.target(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");
const db = postgres.target(
  process.env["DATABASE_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres",
);
const TABLE = "create table if not exists hyperscale_sales (sku text, cents integer)";

export default flow(
  "sale",
  {
    vus: 10,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    setup: async ({ step }) => {
      await step("table", db.query(TABLE));
      await step("price", cache.set("price:tea", "250"));
    },
  },
  async ({ check, step }) => {
    await step("page", shop.get("/json"));
    const price = await step("price", cache.get("price:tea"));
    check("has a price", () => price.value === "250");
    const sale = db.query("insert into hyperscale_sales values ('tea', $1)", [Number(price.value)]);
    await step("sale", sale);
  },
);
