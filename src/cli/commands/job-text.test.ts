import { expect, it } from "vitest";
import { eventsText, jobText } from "./job-text.ts";

it("prints no escape codes that names of other clients' jobs contain", () => {
  const hostile = "flow\u001b]0;pwned\u0007\u001b[2J";
  const view = {
    ...{
      id: "1-a",
      name: hostile,
      status: "FAILED",
      reason: hostile,
      leader: "m1",
      fence: 1,
      cores: 1,
    },
    datacenters: [],
    workflows: [{ name: hostile, status: "FAILED", attempts: [] }],
    thresholds: [{ expression: hostile, actualText: "", passed: false }],
    lost: [{ what: hostile, cost: "" }],
  } as unknown as Parameters<typeof jobText>[0];
  const event = { at: 0, datacenter: "", kind: "JobFailed", text: hostile, token: null, who: "g1" };
  const events = [event] as unknown as Parameters<typeof eventsText>[0];
  expect(jobText(view) + eventsText(events)).not.toMatch(/[\u0007\u001b]/);
  expect(jobText(view)).toContain("flow");
});
