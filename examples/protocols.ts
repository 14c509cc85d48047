// GraphQL and WebSocket beside HTTP, prepared and by hand, against the bundled demo target:
//   hyperscale demo-target   and   hyperscale run examples/protocols.ts

import { graphql, http, websocket, workflow } from "hyperscale";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const socketTarget = target.replace(/^http/, "ws");
const userQuery = "query User($id: ID!) { user(id: $id) { id name } }";

interface User {
  readonly user: { readonly id: string; readonly name: string } | null;
}

export default workflow("protocols", {
  vus: 10,
  duration: "5s",
  think: "10ms",
  thresholds: ["latency.p95 < 500ms", "errors.rate < 1%"],
})
  .step("home", http.get(target))
  .step("user", graphql.query<User>(`${target}/graphql`, userQuery, { variables: { id: 1 } }))
  .step("another user", ({ graphql, user }) =>
    graphql.query<User>(`${target}/graphql`, userQuery, { variables: { id: 1 + (user.id % 10) } }),
  )
  .step("echo", websocket.exchange(`${socketTarget}/ws`, { type: "ping" }, { match: "ping" }))
  .step("open", { after: ["home"] }, ({ ws }) => ws.connect(`${socketTarget}/ws`))
  .step("ask", { after: ["open"] }, ({ ws, user }) =>
    ws.request({ id: user.id }, { match: (message) => message.text().includes(`${user.id}`) }),
  )
  .step("bye", { after: ["ask"] }, ({ ws }) => ws.close())
  .check("the user has a name", ({ results }) => (results.user.data?.user?.name ?? "") !== "")
  .check(
    "the answer is ours",
    ({ results, user }) => results.ask.json<{ id: number }>().id === user.id,
  );
