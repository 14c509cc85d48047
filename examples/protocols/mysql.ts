// A small shop on MySQL or MariaDB: look something up, order it in a transaction.
//
//   npm install mysql2
//   DATABASE_URL=mysql://shop:secret@127.0.0.1:3306/shop hyperscale run examples/protocols/mysql.ts

import { flow } from "hyperscalejs";
import { mysql } from "hyperscalejs/mysql";

const db = mysql.target(process.env["DATABASE_URL"] ?? "mysql://root@127.0.0.1:3306/shop");
const TABLE =
  "create table if not exists hyperscale_orders (sku text, at timestamp default current_timestamp)";

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
    const found = await step("price", db.execute("select ? sku, 12 price", [sku]));
    check("a price", () => found.value.rows[0]?.["price"] === 12);
    const insert = db.query("insert into hyperscale_orders (sku) values (?)", [sku]);
    await step("order", db.transaction(insert));
  },
);
