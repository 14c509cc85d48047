// A small shop on PostgreSQL: look something up, order it in a transaction.
//
//   DATABASE_URL=postgres://shop:secret@127.0.0.1:5432/shop hyperscale run examples/protocols/postgres.ts

import { flow } from "hyperscalejs";
import { postgres } from "hyperscalejs/postgres";

const db = postgres.target(
  process.env["DATABASE_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres",
);
const price = db.prepared("price", "select $1::text sku, 12 price");
const TABLE =
  "create table if not exists hyperscale_orders (sku text, at timestamptz default now())";

export default flow(
  "shop",
  {
    vus: 10,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    setup: async ({ step }) => {
      await step("table", db.query(TABLE));
    },
  },
  async ({ check, pick, step }) => {
    const sku = pick(["tea", "coffee", "cocoa"]);
    const found = await step("price", price([sku]));
    check("a price", () => found.value.rows[0]?.["price"] === 12);
    const insert = db.query("insert into hyperscale_orders (sku) values ($1)", [sku]);
    await step("order", db.transaction(insert));
  },
);
