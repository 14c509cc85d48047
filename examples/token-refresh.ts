// A flow whose users hold a token and fetch a new one when the old one is refused: state that is kept
// over iterations, a helper that several flows could use, and a call that is tried again by hand.
//   hyperscale demo-target   and   hyperscale run examples/token-refresh.ts

import { type FlowContext, flow, http } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089";
const shop = http.target(target);

interface Session {
  token: string;
  refreshed: number;
}

async function login({ step }: Pick<FlowContext, "step">): Promise<string> {
  const call = shop.post<{ token: string }>("/login", { json: { user: "ada" } });
  return (await step("login", call, { required: true })).json().token;
}

export default flow(
  "token refresh",
  {
    vus: 5,
    duration: "10s",
    // Every tenth token is forgotten on purpose, and its refusal is expected.
    thresholds: ["errors.rate < 50%", "checks.rate >= 100%"],
    userSetup: async (ctx): Promise<Session> => ({ token: await login(ctx), refreshed: 0 }),
  },
  async (ctx) => {
    const { check, group, pause, state, step, user } = ctx;
    if (user.iteration % 10 === 9) state.token = "expired";
    await group("list users", async () => {
      const list = () =>
        shop.with({ headers: { authorization: `Bearer ${state.token}` } }).get("/users");
      let users = await step("users", list());
      if (users.status === 401) {
        state.token = await login(ctx);
        state.refreshed++;
        users = await step("users", list(), { required: true });
      }
      check("listed", () => users.status === 200);
    });
    await pause("10ms", "30ms");
  },
);
