/**
 * Files of `hyperscale new`: complete flows that pass against the bundled demo target. Every template must compile and
 * run as it stands; the test beside this file checks that.
 */

export const TEMPLATE_NAMES = ["minimal", "login", "open-model"] as const;
export type TemplateName = (typeof TEMPLATE_NAMES)[number];

interface Template {
  readonly shows: string;
  /** `typed` is false for a JavaScript file, which must do without type arguments. */
  text(name: string, typed: boolean): string;
}

export const templates: Readonly<Record<TemplateName, Template>> = {
  minimal: {
    shows: "one request, 20 virtual users for 10 s",
    text: (name) => `import { flow, http } from "hyperscalejs";

const target = http.target("http://127.0.0.1:8089"); // hyperscale demo-target
const home = target.get("/"); // compiled once; only \`step\` sends it

export default flow(
  "${name}",
  { vus: 20, duration: "10s", thresholds: ["latency.p95 < 200ms", "errors.rate < 1%"] },
  async ({ step }) => {
    await step("home", home);
  },
);
`,
  },
  login: {
    shows: "log in, use the token, check the answer",
    text: (name, typed) => `import { flow, http } from "hyperscalejs";

const target = http.target("http://127.0.0.1:8089"); // hyperscale demo-target
const home = target.get("/"); // compiled once; only \`step\` sends it

export default flow(
  "${name}",
  { vus: 20, duration: "10s", thresholds: ["latency.p95 < 200ms", "errors.rate < 1%"] },
  async ({ check, pause, step }) => {
    await step("home", home);
    const login = await step(
      "login",
      target.post${typed ? "<{ token: string }>" : ""}("/login", { json: { user: "ada" } }),
    );
    const me = target.with({ headers: { authorization: \`Bearer \${login.json().token}\` } });
    const users = await step("users", me.get("/users"));
    check("users answered", () => users.status === 200);
    await pause("20ms", "60ms");
  },
);
`,
  },
  "open-model": {
    shows: "200 arrivals per second, latency measured from the intended start",
    text: (name) => `import { flow, http } from "hyperscalejs";

const target = http.target("http://127.0.0.1:8089"); // hyperscale demo-target
const json = target.get("/json"); // compiled once; only \`step\` sends it

// Arrivals come at their rate whether or not the server keeps up, as real users do. Latency counts
// from the time a request was scheduled, so a stall of the server is seen in full. Try it in mid-run:
//   hyperscale ping "http://127.0.0.1:8089/stall?ms=1000"
export default flow(
  "${name}",
  {
    rate: 200,
    maxVus: 200,
    duration: "10s",
    thresholds: ["latency.p99 < 500ms", "errors.rate < 1%"],
  },
  async ({ check, step }) => {
    const answer = await step("json", json);
    check("json answered", () => answer.status === 200);
  },
);
`,
  },
};
