// Two workflows in one file. The first logs in a few times and hands its token over; the second
// starts when the first is done, and uses it. A value flows only if both sides name each other.

import { url, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const users = url(`${target}/users`);

export const login = workflow("login", { vus: 2, iterations: 10 })
  .step("login", ({ http }) => http.post(`${target}/login`, { json: { user: "ada" } }))
  .check("logged in", ({ results }) => results.login.status === 200)
  // Runs once per core after its last iteration; `last` has each step's last good result.
  .provide("token", { to: ["browse"] }, ({ last }) => last.login?.json<{ token: string }>().token);

export const browse = workflow("browse", {
  vus: 20,
  duration: "10s",
  think: "10ms",
  thresholds: ["latency.p95 < 250ms", "errors.rate < 1%"],
})
  .dependsOn(login)
  // The default stands in when nothing was provided, and gives the value its type.
  .use("session", { from: ["login"], keys: { token: "" } })
  .step("users", ({ http, used }) =>
    http.get(users, { headers: { authorization: `Bearer ${used.session.token}` } }),
  )
  // "users" and "home" name nobody to wait for, so they run at the same time.
  .step("home", ({ http }) => http.get(`${target}/`))
  .step("first user", { after: ["users"] }, ({ http, results, used }) => {
    const { users } = results.users.json<{ users: { id: number }[] }>();
    return http.get(`${target}/users/${users[0]?.id ?? 1}`, {
      headers: { authorization: `Bearer ${used.session.token}` },
    });
  })
  .check("there are users", { after: ["users"] }, ({ results }) => results.users.ok);
