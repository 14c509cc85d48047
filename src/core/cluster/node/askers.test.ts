import { describe, expect, it } from "vitest";
import { ADMISSION_LIMITS } from "../../../wire/admission.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import type { Millis } from "../../base/brand.ts";
import type { StreamId } from "../link/types.ts";
import type { ClientRequest } from "../messages.ts";
import { RequestGuard } from "../overload/request-guard.ts";
import { Askers, type CodeFrom } from "./askers.ts";

interface Who {
  readonly stream?: StreamId;
}

const [first, second] = [1 as StreamId, 2 as StreamId];
const ASKED_MAX = 64;

const watch: StreamEnvelope = {
  name: "clientRequest",
  correlation: 7,
  value: { kind: "watch", job: "j", line: 0, live: false, latencies: false },
};

function newAskers(): { readonly askers: Askers<Who>; readonly guard: RequestGuard } {
  const guard = new RequestGuard(ADMISSION_LIMITS.gate);
  return { askers: new Askers<Who>(guard), guard };
}

const called = (stream: StreamId, role: "client" | "gate" | "manager" = "client") => ({
  ...{ stream, role, name: `${role}-${stream}` },
  message: watch,
});

describe("Askers", () => {
  it("answers each caller once", () => {
    const { askers } = newAskers();
    const id = askers.add({ stream: first });
    expect(askers.take(id)).toEqual({ stream: first });
    expect(askers.take(id)).toBeUndefined();
  });

  it("limits the open requests of one caller without blocking others", () => {
    const { askers } = newAskers();
    const ask = (stream: StreamId) => askers.admit({ stream }, called(stream));
    const ids = Array.from({ length: ASKED_MAX }, () => ask(first));
    expect(ids.every((id) => typeof id === "number")).toBe(true);
    expect(ask(first)).toMatchObject({ reason: "rateLimited", retryAfterMs: 200 });
    expect(ask(second)).toBeTypeOf("number");
    // Requests of the process itself do not count for any caller.
    for (let i = 0; i < 100; i++) askers.add({});
    askers.take(Number(ids[0]));
    expect(ask(first)).toBeTypeOf("number");
  });

  it("forgets callers when their connection closes, and frees their slots", () => {
    const { askers, guard } = newAskers();
    const ids = [first, second, first].map((stream) => askers.admit({ stream }, called(stream)));
    expect(guard.view(0 as Millis).inFlight).toBe(3);
    askers.forget(first);
    expect(guard.view(0 as Millis).inFlight).toBe(1);
    expect(ids.map((id) => askers.take(Number(id)))).toEqual([
      undefined,
      { stream: second },
      undefined,
    ]);
    expect(guard.view(0 as Millis).inFlight).toBe(0);
  });

  it("refuses clients with a retry delay under overload, but not members", () => {
    const { askers, guard } = newAskers();
    guard.sample({ lagMs: 600, cpu: 0, memory: 0, queue: 0 }, 0 as Millis);
    expect(askers.admit({ stream: first }, called(first))).toMatchObject({
      kind: "refused",
      reason: "overloaded",
      retryAfterMs: 1_000,
    });
    expect(askers.admit({ stream: first }, called(first, "manager"))).toBeTypeOf("number");
    expect(guard.view(0 as Millis).shed).toEqual({ critical: 0, high: 0, normal: 1, low: 0 });
  });

  it("rejects jobs of clients that are not listed in codeFrom, but not of gates", () => {
    const value = { kind: "submit", key: "k" } as Extract<ClientRequest, { kind: "submit" }>;
    const message: StreamEnvelope = { name: "clientRequest", correlation: 8, value };
    const submit = (codeFrom: CodeFrom, role: "client" | "gate") => {
      const askers = new Askers<Who>(new RequestGuard(ADMISSION_LIMITS.gate), codeFrom);
      return askers.admit({ stream: first }, { stream: first, role, name: role, message });
    };
    expect(submit([], "client")).toMatchObject({
      reason: "invalid",
      message: expect.stringContaining("codeFrom"),
    });
    expect(submit([], "gate")).toBeTypeOf("number");
    expect(submit(["clients"], "client")).toBeTypeOf("number");
  });

  it("reports answer times to the guard", () => {
    const { askers, guard } = newAskers();
    const id = askers.admit({ stream: first }, called(first));
    askers.at(600 as Millis);
    askers.take(Number(id));
    expect(guard.view(600 as Millis).state).toBe("stressed");
  });
});
