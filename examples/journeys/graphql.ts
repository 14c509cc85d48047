// GraphQL: a query and a mutation with variables. An answer with errors in it is a failed call, although its
// status is 200.

import { flow, graphql } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090";
const api = graphql.target(`${target}/graphql`);

interface Product {
  readonly id: string;
  readonly stars: number;
}

const PRODUCT = "query Product($id: ID!) { product(id: $id) { id stars } }";
const RATE = "mutation Rate($id: ID!, $stars: Int!) { rate(id: $id, stars: $stars) { id stars } }";

export default flow(
  "graphql",
  { vus: 4, iterations: 30, thresholds: ["errors.rate < 1%", "checks.rate == 100%"] },
  async ({ step, check, pick }) => {
    const id = pick(["7", "8", "9"]);
    const read = await step("read", api.query<{ product: Product }>(PRODUCT, { id }));
    check("the product asked for", () => read.data.product.id === id);
    const stars = pick([3, 4, 5]);
    const rated = await step("rate", api.mutation<{ rate: Product }>(RATE, { id, stars }));
    check("rated", () => rated.data.rate.stars === stars);
  },
);
