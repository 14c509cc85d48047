// Rows of data for iterations. `accounts` comes from a CSV file and gives each row exactly once over
// all virtual users and cores: the run ends when every account was used. `orders` is made up as needed.

import { feed, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";

// The types of rows, and what the file is held to before the run.
const columns = { user: String, password: String, page: Number };

export default workflow("data-feed", { vus: 4, iterationsPerVu: 100, maxDuration: "10s" })
  .data("account", feed.csv("data/users.csv", { columns, order: "once" }))
  .data(
    "order",
    feed.generate((n) => ({ id: 1_000 + n, amount: (n % 7) + 1 })),
  )
  .step("login", ({ data, http }) =>
    http.post(`${target}/login`, {
      json: { user: data.account.user, password: data.account.password },
    }),
  )
  .step("order", { after: ["login"] }, ({ data, http, results }) => {
    const { token } = results.login.json<{ token: string }>();
    return http.post(`${target}/echo`, {
      params: { page: data.account.page },
      headers: { authorization: `Bearer ${token}` },
      json: data.order,
    });
  })
  .check("the order arrived", ({ data, results }) => {
    const { body } = results.order.json<{ body: string }>();
    return body.includes(`"id":${data.order.id}`);
  });
