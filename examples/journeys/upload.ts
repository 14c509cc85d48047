// Send a form with a file and a field, then fetch the file again. The path is relative to this file.

import { file, flow, http, route } from "hyperscalejs";

const api = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");
const form = { picture: file("data/badge.svg"), title: "my badge" };

interface Stored {
  readonly id: number;
  readonly bytes: number;
  readonly title: string;
}

export default flow(
  "upload",
  { vus: 4, iterations: 24, thresholds: ["errors.rate < 1%", "checks.rate == 100%"] },
  async ({ step, check }) => {
    const stored = (await step("upload", api.post<Stored>("/files", { form }))).json();
    check("has its title", () => stored.title === "my badge");
    const picture = await step("download", api.get(route`/files/${stored.id}`));
    check("came back whole", () => picture.bytes().byteLength === stored.bytes);
    check("as a picture", () => picture.header("content-type") === "image/svg+xml");
  },
);
