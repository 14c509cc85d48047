// A form with a file, a file as it is, and a body that is made while it is sent. Files stand beside
// the workflow; short ones are read once, long ones while they are sent.

import { file, http, workflow } from "hyperscalejs";

const target = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089", {
  headers: { "x-client": "upload example" },
});

async function* lines(count: number) {
  for (let at = 0; at < count; at++) yield `line ${at}\n`;
}

export default workflow("upload", {
  vus: 5,
  duration: "10s",
  think: "10ms",
  thresholds: ["errors.rate < 1%", "checks.rate > 99%"],
})
  .step("form", target.post("/echo", { form: { users: file("data/users.csv"), note: "hello" } }))
  .step("file", target.put("/echo", { body: file("data/users.csv") }))
  // A stream can be sent once, so a function makes a new one each time.
  .step("stream", ({ http }) => http.send(target.post("/echo", { body: lines(100) })))
  .check("the form has two parts", { after: ["form"] }, ({ results }) => {
    const { body } = results.form.json<{ body: string }>();
    return body.includes('name="note"') && body.includes('filename="users.csv"');
  })
  .check("every line arrived", { after: ["stream"] }, ({ results }) =>
    results.stream.json<{ body: string }>().body.endsWith("line 99\n"),
  );
