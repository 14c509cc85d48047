// A first workflow: three steps, a check and two thresholds. `npm start` runs it against the bundled
// demo target; on its own:  hyperscale demo-target   and   hyperscale run examples/quickstart.ts

import { http, workflow } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";

export default workflow("quickstart", {
  vus: 20,
  duration: "10s",
  think: { min: "20ms", max: "60ms" },
  // Generous, because it must hold on any machine.
  thresholds: ["latency.p95 < 1s", "errors.rate < 1%"],
})
  .step("home", http.get(target))
  .step("login", ({ http }) => http.post(`${target}/login`, { json: { user: "ada" } }))
  .step("users", { after: ["login"] }, ({ http, results }) => {
    const { token } = results.login.json<{ token: string }>();
    return http.get(`${target}/users`, { headers: { authorization: `Bearer ${token}` } });
  })
  .check("users answered", ({ results }) => results.users.status === 200);
