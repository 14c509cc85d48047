import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { MemberOutput } from "./member-output.ts";
import { MemberRoster } from "./member-roster.ts";
import { decodeMemberState, encodeMemberState, type MemberState } from "./member-state.ts";

const STATE: MemberState = {
  ...{ health: 3, group: "managers", leading: true, term: 7, electorate: "abc" },
};

describe("the embedded state of a member", () => {
  it("survives encoding and decoding", () => {
    expect(decodeMemberState(encodeMemberState(STATE))).toEqual(STATE);
  });

  it("is dropped when malformed, and the previous one is kept (EMB-6)", () => {
    const bytes = encodeMemberState(STATE);
    const a = nodeId("a");
    const roster = new MemberRoster(nodeId("me"), new MemberOutput());
    expect(roster.onState(a, bytes)).toEqual(STATE);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(bytes.length - 1), (other, cut) => {
        for (const broken of [other, bytes.subarray(0, cut)]) {
          const read = decodeMemberState(broken);
          if (read !== null) continue;
          expect(roster.onState(a, broken)).toBeNull();
          expect(roster.states.get(a)).toEqual(STATE);
        }
      }),
    );
    expect(decodeMemberState(bytes.subarray(0, bytes.length - 1))).toBeNull();
    expect(decodeMemberState(new Uint8Array(0))).toBeNull();
  });
});
