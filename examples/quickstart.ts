// A first flow: three calls, a check and two thresholds. `npm start` runs it against the bundled
// demo target; on its own:  hyperscale demo-target   and   hyperscale run examples/quickstart.ts

import { flow, http } from "hyperscalejs";

const shop = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089");
const home = shop.get("/"); // describes a request, compiled once; only `step` sends it

export default flow(
  "quickstart",
  {
    vus: 20,
    duration: "10s",
    // Generous, because it must hold on any machine.
    thresholds: ["latency.p95 < 1s", "errors.rate < 1%"],
  },
  async ({ check, pause, step }) => {
    await step("home", home);
    const login = await step(
      "login",
      shop.post<{ token: string }>("/login", { json: { user: "ada" } }),
    );
    const me = shop.with({ headers: { authorization: `Bearer ${login.json().token}` } });
    const users = await step("users", me.get("/users"));
    check("users answered", () => users.status === 200);
    await pause("20ms", "60ms");
  },
);
