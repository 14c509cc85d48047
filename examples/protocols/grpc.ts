// A catalogue: one item by its number, then the first of the list as a stream.
//
//   GRPC_URL=grpc://127.0.0.1:50051 hyperscale run examples/protocols/grpc.ts

import { flow } from "hyperscalejs";
import { grpc } from "hyperscalejs/grpc";

interface Item {
  readonly id: string;
  readonly name: string;
}

const catalog = grpc.target(process.env["GRPC_URL"] ?? "grpc://127.0.0.1:50051", {
  proto: new URL("./shop.proto", import.meta.url),
});

export default flow(
  "catalog",
  { vus: 10, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, pick, step }) => {
    const id = pick([1, 2, 3]);
    const item = await step("item", catalog.unary<Item>("shop.Catalog/GetItem", { id }));
    check("the item asked for", () => item.value.id === `${id}`);
    const list = await step("list", catalog.serverStream<Item>("shop.Catalog/List", { count: 3 }));
    check("three of them", () => list.value.length === 3);
  },
);
