import { Command } from "commander";
import { afterEach, expect, it, vi } from "vitest";
import { registerCluster } from "./cluster.ts";

afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = 0;
});

it("starts nothing in cluster up with an empty list of datacenters", async () => {
  const said: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
  const program = new Command();
  registerCluster(program);
  await program.parseAsync(["cluster", "up", "--datacenters="], { from: "user" });
  expect(said.join("")).toContain("hyperscale cluster up: --datacenters: names no datacenter");
  expect(process.exitCode).toBe(2);
});
