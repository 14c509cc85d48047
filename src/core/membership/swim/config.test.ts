import { describe, expect, it } from "vitest";
import { type ProfileName, SWIM_PROFILES } from "./config.ts";
import { Bench } from "./testing/bench.ts";

describe("a configuration of membership", () => {
  it.each(Object.keys(SWIM_PROFILES) as ProfileName[])("profile %s is accepted", (name) => {
    expect(() => new Bench({ config: SWIM_PROFILES[name] })).not.toThrow();
  });

  it.each([
    [{ probeTimeoutMs: 5_000 }, "a probe ends inside its interval"],
    [{ indirectChecks: 0 }, "asked after before it is suspected"],
    [{ gossipNodes: 0 }, "gossip reaches somebody"],
    [{ streamTimeoutMs: 0 }, "an exchange has time to end"],
    [{ deadReapMs: 1_000 }, "the dead are told before they are forgotten"],
  ])("with %j is refused at construction", (config, problem) => {
    expect(() => new Bench({ config })).toThrow(problem);
  });
});
