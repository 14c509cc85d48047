import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { QueueError } from "../../core/queue/errors.ts";
import { readSettings } from "../config.ts";
import { parseParams, parseSubmit } from "./submit-request.ts";

describe("submit", () => {
  it("puts tasks with the same executor and constraints in one lane, whatever their order of keys", () => {
    const a = parseSubmit(
      { executor: "e", placement_constraints: { allowed_nodes: ["a"], forbidden_nodes: ["b"] } },
      3,
    );
    const b = parseSubmit(
      { executor: "e", placement_constraints: { forbidden_nodes: ["b"], allowed_nodes: ["a"] } },
      3,
    );
    expect(a.lane).toBe(b.lane);
    expect(parseSubmit({ executor: "e", placement_constraints: {} }, 3).lane).toBe("e");
  });

  it("hashes content only when there is a key, and by what runs, not when", () => {
    const base = { executor: "e", input: { a: 1, b: 2 }, idempotency_key: "k" };
    const hash = parseSubmit(base, 3).contentHash;
    expect(parseSubmit({ ...base, input: { b: 2, a: 1 }, run_after: 5 }, 3).contentHash).toBe(hash);
    expect(parseSubmit({ ...base, input: { a: 1 } }, 3).contentHash).not.toBe(hash);
    expect(parseSubmit({ executor: "e" }, 3).contentHash).toBeUndefined();
  });

  it("accepts or rejects arbitrary input, with a named error", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.record(
            { executor: fc.string(), input: fc.jsonValue(), depends_on: fc.jsonValue() },
            { requiredKeys: [] },
          ),
        ),
        (value) => {
          try {
            expect(parseSubmit(value, 3).executor.length).toBeGreaterThan(0);
          } catch (error) {
            expect(error).toBeInstanceOf(QueueError);
          }
        },
      ),
    );
  });
});

describe("settings", () => {
  it("reads fractions of a second from the environment and lets options win (TQ-45)", () => {
    const environment = {
      HYPERSCALE_LEASE_DURATION_SECONDS: "1.5",
      HYPERSCALE_MAX_PARALLEL_TASKS_PER_NODE: "9",
    };
    const settings = readSettings(environment, { maxParallel: 2 });
    expect(settings).toMatchObject({ taskLeaseMs: 1_500, maxParallel: 2, leaseCleanupMs: 500 });
  });

  it("rejects an environment variable that is no number, by its name", () => {
    expect(() => readSettings({ HYPERSCALE_POLL_INTERVAL_SECONDS: "often" }, {})).toThrow(
      /HYPERSCALE_POLL_INTERVAL_SECONDS is "often"/,
    );
  });
});

describe("a refusal", () => {
  it("names the field and says what it must be, in plain words", () => {
    const schema = z.strictObject({
      concurrency: z.int().positive().max(1_000_000).nullish(),
      rate: z.strictObject({ count: z.int().positive() }).optional(),
      queue: z.string().min(1).max(3),
      ids: z.array(z.int()).max(2).optional(),
      state: z.enum(["QUEUED", "FAILED"]).optional(),
      paused: z.boolean().optional(),
    });
    const refusals: readonly [object, string][] = [
      [{ queue: "a", concurrency: 2e6 }, "concurrency: must be at most 1,000,000"],
      [{ queue: "a", concurrency: 0 }, "concurrency: must be more than 0"],
      [{ queue: "a", concurrency: 1.5 }, "concurrency: must be a whole number"],
      [{ queue: "a", rate: { count: "1" } }, "rate.count: must be a number"],
      [{}, "queue: is missing"],
      [{ queue: "" }, "queue: must have at least 1 characters"],
      [{ queue: "long" }, "queue: must have at most 3 characters"],
      [{ queue: "a", ids: [1, 2, 3] }, "ids: must have at most 2 entries"],
      [{ queue: "a", state: "GONE" }, 'state: must be "QUEUED" or "FAILED"'],
      [{ queue: "a", paused: "no" }, "paused: must be true or false"],
      [{ queue: "a", extra: 1 }, 'params: has no field "extra"'],
    ];
    for (const [params, words] of refusals)
      expect(() => parseParams(schema, params)).toThrow(new QueueError("INVALID_PARAMS", words));
  });
});
