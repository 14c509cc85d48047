// A GraphQL server as a target: queries are described, and `step` performs them. Asking a failed call
// for `data` ends the iteration because of that call, so `data` needs no check of its own.

import { flow, graphql } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const api = graphql.target(`${target}/graphql`);

interface UserData {
  readonly user: { readonly id: string; readonly name: string };
}
// The same every time: its bytes are ready before the run.
const first = api.query<UserData>("query First { user(id: 1) { id name } }");

export default flow(
  "graphql-target",
  { vus: 10, duration: "10s", thresholds: ["errors.rate < 1%", "latency.p95 < 1s"] },
  async ({ step, check, user, pause }) => {
    await step(first); // named "query First"
    const id = (user.iteration % 100) + 1;
    const me = api.with({ headers: { "x-user": String(user.id) } });
    const any = await step(
      "any user",
      me.query<UserData>("query($id: ID!) { user(id: $id) { id name } }", { id }),
    );
    check("got the user asked for", () => any.data.user.id === String(id));
    await pause("20ms");
  },
);
