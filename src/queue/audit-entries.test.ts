import { describe, expect, it } from "vitest";
import { QueueError } from "../core/queue/errors.ts";
import { isSteering, steeringEntry } from "./audit-entries.ts";

const requester = { kind: "client", name: "", credential: "token:1", address: "" } as const;
const bundle = { executor: "loadtest", input: { bundle: "0".repeat(64) }, key: "k" };
const entryOf = (method: string, params: unknown, error: unknown = null) =>
  isSteering({ method, params }) &&
  steeringEntry({ method, params }, requester, { node: "q1", error });

describe("the audit entries of a queue node", () => {
  it("record the sender of code, graphs and files", () => {
    const detail = { outcome: "done" };
    const submitted = { kind: "queue.submitted", requester };
    expect(entryOf("submit_task", bundle)).toEqual({
      ...{ ...submitted, subject: "loadtest" },
      detail: { key: "k", ...detail },
    });
    expect(entryOf("submit_tasks", { tasks: [bundle] })).toEqual({
      ...{ ...submitted, subject: "q1", detail },
    });
    expect(entryOf("submit_graph", { key: "g", tasks: {} })).toEqual({
      ...{ ...submitted, subject: "g", detail },
    });
    expect(entryOf("put_file", { hash: "abc", chunks: 2 })).toEqual({
      ...{ kind: "queue.stored", subject: "abc", requester },
      detail: { chunks: "2", ...detail },
    });
  });

  it("record a rejected attempt with its code", () => {
    const refused = entryOf("submit_task", bundle, new QueueError("FORBIDDEN", "no code"));
    expect(refused).toMatchObject({ detail: { outcome: "FORBIDDEN" } });
  });

  it("leave out plain submits and reads", () => {
    const plain = { executor: "sleep", input: { bundle: "not a load test" } };
    for (const method of ["submit_task", "submit_tasks", "get_task"])
      expect(entryOf(method, method === "submit_tasks" ? { tasks: [plain] } : plain)).toBe(false);
  });
});
