import { describe, expect, it } from "vitest";
import { RouteTable } from "./routes.ts";

const table = new RouteTable<string>();
table.add("GET /v1/jobs", "list");
table.add("GET /v1/jobs/:id", "job");
table.add("POST /v1/jobs/:id/events", "event");

describe("a table of routes", () => {
  it.each([
    ["GET", "/v1/jobs", "list", {}],
    ["GET", "/v1/jobs/a%20b", "job", { id: "a b" }],
    ["GET", "/v1/jobs/%3Aid", "job", { id: ":id" }],
    ["POST", "/v1/jobs/7/events", "event", { id: "7" }],
  ])("finds %s %s", (method, path, value, params) => {
    expect(table.find(method, path)).toEqual({ value, params });
  });

  it.each([
    ["POST", "/v1/jobs"],
    ["GET", "/v1/jobs/"],
    ["GET", "/v1/jobs/7/"],
    ["GET", "/v1/jobs/7/events"],
    ["GET", "/v1/toString"],
  ])("rejects %s %s", (method, path) => {
    expect(table.find(method, path)).toBeNull();
  });

  it("rejects a badly encoded part", () => {
    expect(() => table.find("GET", "/v1/jobs/%E0%A4%A")).toThrow(/not well encoded/);
  });
});
