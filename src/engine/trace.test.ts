/** Output of `run --trace` for one iteration. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { startDemoTarget } from "../demo/server.ts";
import { graphql } from "../protocols/graphql/index.ts";
import { http } from "../protocols/http1/index.ts";
import { ws } from "../protocols/websocket/index.ts";
import { flow } from "../workflow/flow.ts";
import { traceFlow } from "./trace.ts";

it("shows every call, says what was prepared, and masks secrets", async () => {
  const demo = await startDemoTarget({ port: 0 });
  const shop = http.target(demo.url);
  const journey = flow("journey", async ({ check, step }) => {
    const user = { user: "ada", password: "hunter2" };
    const login = await step("login", shop.post<{ token: string }>("/login", { json: user }));
    const { token } = login.json();
    const me = shop.with({ headers: { authorization: `Bearer ${token}` } });
    await step("users", me.get("/users"));
    check("never true", () => false);
    await step("fails", shop.get("/fail"), { required: true });
  });
  const lines: string[] = [];
  const passed = await traceFlow(journey.definition, {}, ".", (line) => lines.push(line));
  await demo.close();
  const text = lines.join("\n");
  expect(passed).toBe(false);
  expect(text).toMatch(/^flow "journey": one iteration/);
  expect(text).toContain('  > {"user":"ada","password":"***"}');
  expect(text).toContain('"token":"***"');
  expect(text).toContain("  > authorization: ***");
  expect(text).not.toMatch(/hunter2|Bearer/);
  expect(text).toMatch(/^login {2}ok .*prepared but for its path and content\)$/m);
  expect(text).toMatch(/^users {2}ok .*prepared but for its path and headers\)$/m);
  expect(text).toMatch(/^fails {2}FAILED \(status\): the server answered with status 500/m);
  expect(text).toContain("check FAILED: never true");
  expect(text).toContain("outcome: ended, fails");
});

it("shows what GraphQL and WebSocket send, and every hop of a redirect with its cookies", async () => {
  const demo = await startDemoTarget({ port: 0 });
  const server = createServer((request, response) => {
    if (request.url === "/end") response.end("there");
    else response.writeHead(302, { location: "/end", "set-cookie": "seen=yes" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const api = graphql.target(`${demo.url}/graphql`);
  const room = ws.target(`${demo.url.replace("http", "ws")}/ws`);
  const journey = flow("journey", async ({ step }) => {
    await step("moved", http.get(`http://127.0.0.1:${port}/begin`, { redirects: 3 }));
    await step("user", api.query("query User($id: ID!) { user(id: $id) { id } }", { id: 1 }));
    const socket = await step("connect", room.connect({ headers: { "x-room": "7" } }));
    await step("say", socket.request({ hello: "room" }));
  });
  const lines: string[] = [];
  await traceFlow(journey.definition, {}, ".", (line) => lines.push(line));
  await demo.close();
  server.close();
  const text = lines.join("\n");
  const requests = lines.filter((line) => line.startsWith("  > "));
  expect(requests.filter((line) => line.includes("GET /"))).toEqual([
    "  > GET /begin HTTP/1.1",
    "  > GET /end HTTP/1.1",
  ]);
  expect(text).toContain("  > cookie: ***");
  expect(text).toMatch(/^ {2}> .*"variables":\{"id":1\}/m);
  expect(text).toContain("  > x-room: 7");
  expect(text).toContain('  > {"hello":"room"}');
});
