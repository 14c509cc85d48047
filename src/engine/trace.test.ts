/** What `run --trace` shows of one iteration. */

import { expect, it } from "vitest";
import { startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
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
  expect(text).toMatch(/^login {2}ok .*composed anew\)$/m);
  expect(text).toMatch(/^fails {2}FAILED \(status\): the server answered with status 500/m);
  expect(text).toContain("check FAILED: never true");
  expect(text).toContain("outcome: ended, fails");
});
