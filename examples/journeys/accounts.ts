// An account for every user: each row of the file goes to one user, who logs in once and keeps its token.

import { feed, flow, http } from "hyperscalejs";

const api = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");

interface Account {
  readonly user: string;
  readonly password: string;
}

export default flow(
  "accounts",
  {
    vus: 5,
    iterationsPerVu: 6,
    thresholds: ["errors.rate < 1%", "checks.rate == 100%"],
    data: { account: feed.csv<Account>("data/accounts.csv", { order: "once", per: "user" }) },
    userSetup: async ({ step, data }) => {
      const answer = await step(
        "log in",
        api.post<{ token: string }>("/token", { json: data.account }),
      );
      const authorization = `Bearer ${answer.json().token}`;
      return { mine: api.with({ headers: { authorization } }) };
    },
  },
  async ({ step, check, data, state }) => {
    const profile = await step("profile", state.mine.get<{ user: string }>("/profile"));
    check("its own", () => profile.json().user === data.account.user);
  },
);
