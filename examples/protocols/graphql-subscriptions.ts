// Subscriptions of GraphQL: each user keeps one connection, asks for prices, and waits for each.
//
//   GRAPHQL_URL=http://127.0.0.1:4000/graphql hyperscale run examples/protocols/graphql-subscriptions.ts

import { flow, graphql } from "hyperscalejs";

const api = graphql.target(process.env["GRAPHQL_URL"] ?? "http://127.0.0.1:4000/graphql");

interface Price {
  readonly price: { readonly cents: number };
}

const PRICES = "subscription Prices($item: ID!) { price(item: $item, count: 3) { cents } }";

export default flow(
  "prices",
  {
    vus: 10,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    userSetup: async ({ step }) => {
      const live = await step("connect", api.connect({ keep: "user" }), { required: true });
      return { live };
    },
  },
  async ({ check, state, step }) => {
    const prices = await step("subscribe", state.live.subscribe<Price>(PRICES, { item: "tea" }));
    let price = await step("price", prices.next({ within: "5s" }));
    while (price.ok && !price.done) {
      const { cents } = price.data.price;
      check("a price", () => cents > 0);
      price = await step("price", prices.next({ within: "5s" }));
    }
  },
);
