// Hand in a job, ask until it is done, fetch what came out. Every question is a call of its own; the wait as
// a whole is the group "report is ready".

import { flow, http, route } from "hyperscalejs";

const api = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");

export default flow(
  "job",
  {
    vus: 5,
    iterations: 25,
    thresholds: [
      "errors.rate < 1%",
      'duration{group="report is ready"}.p95 < 60s',
      "iterations.count >= 25",
    ],
  },
  async ({ step, poll, check }) => {
    const job = await step("hand in", api.post<{ id: number }>("/jobs", { json: { of: "sales" } }));
    const { id } = job.json();
    await poll("report is ready", () => api.get<{ state: string }>(route`/jobs/${id}`), {
      until: (answer) => answer.json().state === "done",
      every: "20ms",
      within: "2m",
      required: true,
    });
    const report = await step("fetch", api.get<{ rows: number }>(route`/jobs/${id}/result`));
    check("has rows", () => report.json().rows > 0);
  },
);
