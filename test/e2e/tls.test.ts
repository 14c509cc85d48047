/** A run that verifies no certificates reports it beside its metrics; one that trusts its own authority does not. */

import https from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeCertificate } from "../../src/demo/certificate.ts";
import { Scratch } from "./cli.ts";

const certificate = makeCertificate({ hosts: ["shop.test"] });
let here: Scratch;
let server: https.Server;
let port: number;
let bodies: string[] = [];

beforeAll(async () => {
  here = new Scratch();
  server = https.createServer(certificate, (request, response) => {
    let body = "";
    request.on("data", (piece) => {
      body += String(piece);
    });
    request.on("end", () => {
      bodies.push(body);
      response.end("ok");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  here.remove();
});

it("--insecure leaves a note in the terminal, the summary and the report", async () => {
  const url = `https://127.0.0.1:${port}/`;
  const flags = ["--insecure", "--vus", "1", "--iterations", "20", "--out", "out", "--ui", "ci"];
  const { code, stderr, stdout } = await here.start(["run", url, ...flags]).done;
  expect(code, stderr).toBe(0);
  const note = `TLS certificates of 127.0.0.1:${port} were NOT verified (insecure)`;
  expect(here.summary().notes.join("\n")).toContain(note);
  expect(stdout).toContain(note);
  expect(here.pageData()).toContain("were NOT verified (insecure)");
});

it("a target with files for its authority and its forms runs from functions and prepared", async () => {
  here.write("ca.pem", certificate.cert);
  here.write("cart.json", '{"tea":1}');
  bodies = [];
  here.write(
    "flow.ts",
    `import { file, http, workflow } from "hyperscalejs";
     const shop = http.target("https://shop.test", {
       ca: file("ca.pem"),
       hosts: { "shop.test": "127.0.0.1:${port}" },
     });
     export default workflow("upload", { vus: 1, iterations: 3 })
       .step("prepared", shop.post("/a", { form: { cart: file("cart.json"), note: "hi" } }))
       .step("function", ({ http }) => http.send(shop.post("/b", { body: file("cart.json") })));`,
  );
  const { code, stderr, stdout } = await here.start([
    "run",
    "flow.ts",
    "--out",
    "own",
    "--ui",
    "ci",
  ]).done;
  expect(code, `${stdout}${stderr}`).toBe(0);
  expect(here.summary("own").notes.join("\n")).not.toContain("NOT verified");
  expect(bodies.filter((body) => body === '{"tea":1}')).toHaveLength(3);
  expect(bodies.filter((body) => body.includes('filename="cart.json"'))).toHaveLength(3);
});
