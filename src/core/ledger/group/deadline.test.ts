import { expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { VSR_DEFAULTS } from "./config.ts";
import { Replica } from "./replica.ts";
import { freshState } from "./state.ts";

it("ignores deadlines of a primary while it does not lead", () => {
  const self = nodeId("n0");
  const state = freshState(1, [self, nodeId("n1"), nodeId("n2")]);
  state.heartbeatAt = 5;
  state.noticeAt = 6;
  state.electAt = 9_000;
  const replica = new Replica({ self, config: VSR_DEFAULTS }, state, new Random("deadline"));
  expect(replica.nextDeadline()).toBe(9_000);
});
