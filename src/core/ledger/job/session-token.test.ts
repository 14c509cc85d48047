import { describe, expect, it } from "vitest";
import { SessionToken } from "./session-token.ts";

describe("a client's token (SESS-1..3)", () => {
  it("requires the highest index that the client has seen, per job", () => {
    const token = new SessionToken();
    token.saw("a", 4);
    token.saw("a", 2);
    token.saw("b", 0);
    token.saw("c", -1);
    expect(["a", "b", "c"].map((job) => token.need(job))).toEqual([
      { level: "SESSION", minSeq: 4 },
      { level: "SESSION", minSeq: 0 },
      { level: "SESSION", minSeq: -1 },
    ]);
  });

  it("is bounded, and reads strongly what it may have let go of (SESS-2)", () => {
    const token = new SessionToken();
    for (let i = 0; i < 1_025; i++) {
      token.saw("kept", i);
      token.saw(`job${i}`, i);
    }
    expect(token.need("job0")).toEqual({ level: "STRONG", minSeq: -1 });
    expect(token.need("kept")).toEqual({ level: "SESSION", minSeq: 1_024 });
    expect(token.toText().split(" ")).toHaveLength(1_026);
    const copy = SessionToken.parse(token.toText());
    expect(copy?.toText()).toBe(token.toText());
    expect(copy?.need("job0").level).toBe("STRONG");
  });

  it("is nothing but what it writes", () => {
    const wrong = ["", "2 - a=1", "1 ? a=1", "1 - a=x", "1 - =1", "1 - a", "1 - a=-1", "1 - a=0.5"];
    for (const text of wrong) expect(SessionToken.parse(text)).toBe(null);
    expect(SessionToken.parse("1 - a=1 b=2\n")?.placeOf("b")).toBe(2);
  });
});
