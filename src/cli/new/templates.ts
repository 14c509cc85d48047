/**
 * What `hyperscale new` writes: complete workflows that pass against the bundled demo target. Every
 * template must compile and run as it stands; the test beside this file holds them to it.
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
    shows: "one prepared request, 20 virtual users for 10 s",
    text: (name) => `import { http, workflow } from "hyperscalejs";

const target = "http://127.0.0.1:8089"; // hyperscale demo-target

export default workflow("${name}", {
  vus: 20,
  duration: "10s",
  thresholds: ["latency.p95 < 200ms", "errors.rate < 1%"],
}).step("home", http.get(\`\${target}/\`));
`,
  },
  login: {
    shows: "log in, use the token, check the answer",
    text: (name, typed) => `import { http, workflow } from "hyperscalejs";

const target = "http://127.0.0.1:8089"; // hyperscale demo-target

export default workflow("${name}", {
  vus: 20,
  duration: "10s",
  thresholds: ["latency.p95 < 200ms", "errors.rate < 1%"],
})
  // No function: the request is compiled once and sent as it is.
  .step("home", http.get(\`\${target}/\`))
  .step("login", ({ http }) => http.post(\`\${target}/login\`, { json: { user: "ada" } }))
  .step("users", { after: ["login"] }, ({ http, results }) => {
    const { token } = results.login.json${typed ? "<{ token: string }>" : ""}();
    return http.get(\`\${target}/users\`, { headers: { authorization: \`Bearer \${token}\` } });
  })
  .check("users answered", ({ results }) => results.users.status === 200);
`,
  },
  "open-model": {
    shows: "200 arrivals per second, latency measured from the intended start",
    text: (name) => `import { http, workflow } from "hyperscalejs";

const target = "http://127.0.0.1:8089"; // hyperscale demo-target

// Arrivals come at their rate whether or not the server keeps up, as real users do. Latency counts
// from the moment a request was due, so a stall of the server is seen in full. Try it in mid-run:
//   hyperscale ping "http://127.0.0.1:8089/stall?ms=1000"
export default workflow("${name}", {
  rate: 200,
  maxVus: 200,
  duration: "10s",
  thresholds: ["latency.p99 < 500ms", "errors.rate < 1%"],
})
  .step("json", http.get(\`\${target}/json\`))
  .check("json answered", ({ results }) => results.json.status === 200);
`,
  },
};
