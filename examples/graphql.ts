// GraphQL over HTTP. Documents are checked when the file is loaded; an answer with errors inside
// counts as a failure of kind "application", although its status is 200.

import { graphql, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const api = `${target}/graphql`;

interface UserData {
  readonly user: { readonly id: string; readonly name: string } | null;
}

export default workflow("graphql", {
  vus: 10,
  duration: "10s",
  think: "20ms",
  thresholds: ["errors.rate < 1%", 'latency{step="any user"}.p95 < 1s'],
})
  // Prepared: the same query every time.
  .step("first user", graphql.query<UserData>(api, "query { user(id: 1) { id name } }"))
  // With variables of this iteration.
  .step("any user", ({ graphql, user }) =>
    graphql.query<UserData>(api, "query($id: Int!) { user(id: $id) { id name } }", {
      variables: { id: (user.iteration % 100) + 1 },
    }),
  )
  .check("got the user asked for", ({ results, user }) => {
    return results["any user"].data?.user?.id === String((user.iteration % 100) + 1);
  });
