// A small shop on MongoDB: look something up, order it.
//
//   npm install bson
//   MONGODB_URL=mongodb://127.0.0.1:27017/shop hyperscale run examples/protocols/mongodb.ts

import { flow } from "hyperscalejs";
import { mongodb } from "hyperscalejs/mongodb";

const db = mongodb.target(process.env["MONGODB_URL"] ?? "mongodb://127.0.0.1:27017/shop");

export default flow(
  "shop",
  {
    vus: 10,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    setup: async ({ step }) => {
      const price = { $set: { price: 12 } };
      await step(
        "price",
        db.updateOne("hyperscale_items", { sku: "tea" }, price, { upsert: true }),
      );
    },
  },
  async ({ check, step }) => {
    const found = await step("item", db.findOne("hyperscale_items", { sku: "tea" }));
    check("a price", () => found.value?.["price"] === 12);
    await step("order", db.insertOne("hyperscale_orders", { sku: "tea", at: new Date() }));
  },
);
