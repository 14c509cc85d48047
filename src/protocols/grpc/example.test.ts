import { expect, it, onTestFinished } from "vitest";
import { runExample } from "../testing/example.ts";
import { startShop } from "./testing/server.ts";

it("matches the server's own count in a whole run", async () => {
  const server = await startShop();
  onTestFinished(() => server.stop());
  const steps = await runExample("grpc.ts", { GRPC_URL: `grpc://127.0.0.1:${server.port}` });
  const [item, list] = [steps.get("item"), steps.get("list")];
  expect(await server.served()).toBe(item?.sent);
  expect(server.calls()).toBe((item?.sent ?? 0) + (list?.sent ?? 0));
});
