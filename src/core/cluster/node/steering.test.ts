import { expect, it } from "vitest";
import { submission } from "../manager/testing/world.ts";
import type { ClientRequest } from "../messages.ts";
import { steeringOf } from "./steering.ts";

const entriesOf = (value: ClientRequest, role = "client") =>
  steeringOf({ role, name: "ada", message: { name: "clientRequest", correlation: 1, value } });

it("records the code digest of a submitted job, and the author of a control", () => {
  const job = submission();
  const code = job.files.find(({ path }) => path === job.entry)?.hash ?? "";
  const routing = {
    datacenters: [],
    count: 1,
    prefer: [],
    strict: false,
    weights: [],
    each: false,
  };
  expect(entriesOf({ kind: "submit", key: "k1", submission: job, routing })).toEqual([
    {
      ...{ kind: "steered", client: "ada", what: "submitted", subject: "k1" },
      detail: { name: job.name, code, files: job.files.length },
    },
  ]);
  const control = { kind: "cancel", reason: "late" } as const;
  expect(entriesOf({ kind: "control", job: "j1", by: "bob", control })).toMatchObject([
    { what: "controlled", subject: "j1", detail: { control: "cancel", by: "bob" } },
  ]);
  expect(entriesOf({ kind: "drain", node: "w1" })).toMatchObject([{ what: "drained" }]);
});

it("records nothing for read-only requests", () => {
  expect(entriesOf({ kind: "nodes" })).toEqual([]);
  expect(entriesOf({ kind: "drain", node: "w1" }, "gate")).toEqual([]);
  expect(entriesOf({ kind: "status", job: "j1" })).toEqual([]);
});
