import { describe, expect, it } from "vitest";
import { address } from "../../base/ids.ts";
import { refusal } from "../messages.ts";
import { Asking } from "./asking.ts";

const ONE = address("10.0.0.1:7700");
const TWO = address("10.0.0.2:7700");
const KNOWN = [ONE, TWO];
const NOBODY = { connected: [], isRefused: false };
const BOTH = { connected: KNOWN, isRefused: false };
const UNKNOWN = refusal("unknownJob", "there is no job j1");

describe("a client request", () => {
  it("is retried at the node the answer names, or at any other", () => {
    const asking = new Asking(null, 0);
    const moved = { ...refusal("notLeader", "m2 leads j1"), address: TWO };
    expect(asking.take(moved, ONE, BOTH, 10)).toEqual({ kind: "again", to: TWO, afterMs: 0 });
    const later = { ...refusal("rateLimited", "too many"), retryAfterMs: 700 };
    expect(asking.take(later, TWO, BOTH, 20)).toEqual({ kind: "again", to: null, afterMs: 700 });
    expect(asking.take(null, null, BOTH, 30)).toMatchObject({ kind: "again", to: null });
    const answer = { kind: "controlled" } as const;
    expect(asking.take(answer, ONE, BOTH, 40)).toEqual({ kind: "decided", answer });
  });

  it("fails for an unknown job when all connected nodes deny it, after a delay", () => {
    const asking = new Asking(null, 0);
    expect(asking.take(UNKNOWN, ONE, BOTH, 100).kind).toBe("again");
    expect(asking.take(UNKNOWN, TWO, BOTH, 200).kind).toBe("again");
    expect(asking.take(UNKNOWN, ONE, BOTH, 3_100)).toEqual({ kind: "givenUp", refusal: UNKNOWN });
  });

  it("fails at once for an unknown job when only one node exists", () => {
    const only = { connected: [ONE], isRefused: false, isOnly: true };
    const verdict = new Asking(null, 0).take(UNKNOWN, ONE, only, 100);
    expect(verdict).toEqual({ kind: "givenUp", refusal: UNKNOWN });
    expect(new Asking("j1", 0).take(UNKNOWN, ONE, only, 100).kind).toBe("again");
  });

  it("does not trust a lagging node while another has not been asked", () => {
    const asking = new Asking(null, 0);
    for (let now = 0; now < 20_000; now += 200)
      expect(asking.take(UNKNOWN, ONE, BOTH, now).kind).toBe("again");
  });

  it("is never answered with unknown job for an accepted job", () => {
    const asking = new Asking("j1", 0);
    for (let now = 0; now <= 30_000; now += 200)
      for (const from of KNOWN) expect(asking.take(UNKNOWN, from, BOTH, now).kind).toBe("again");
    expect(asking.take(UNKNOWN, ONE, BOTH, 30_200)).toMatchObject({
      kind: "givenUp",
      refusal: { reason: "retry", message: "j1 is accepted, and whoever answers does not know it" },
    });
  });

  it("fails at once when a retry would not change the answer", () => {
    const wrong = refusal("invalid", "the job has no workflow");
    expect(new Asking("j1", 0).take(wrong, ONE, BOTH, 0)).toEqual({
      ...{ kind: "givenUp", refusal: wrong },
    });
  });

  it("is abandoned when no node answers for long", () => {
    const asking = new Asking(null, 0);
    expect(asking.take(null, null, NOBODY, 30_000).kind).toBe("again");
    expect(asking.take(null, null, NOBODY, 30_001)).toEqual({ kind: "givenUp", refusal: null });
  });

  it("is abandoned when every node rejects the client", () => {
    const refused = { connected: [], isRefused: true };
    const verdict = new Asking(null, 0).take(null, null, refused, 2_000);
    expect(verdict).toEqual({ kind: "givenUp", refusal: null });
  });
});
