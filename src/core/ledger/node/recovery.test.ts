import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { type NodeId, nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import type { GroupId } from "../group/messages.ts";
import { EMPTY_IMAGE } from "../group/state.ts";
import type { GroupImage } from "../group/types.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "./config.ts";
import { LedgerNode } from "./node.ts";
import { encodeGroupRecord, recordType } from "./records.ts";
import { LedgerRecovery, snapshotSlices } from "./recovery.ts";

const members = ["n1", "n2", "n3"].map(nodeId);
const NOW = millis(0);
const WALL = 1_700_000_000_000;

function groupName(number: number): GroupId {
  return `use1-${WALL}-n1-${String(number).padStart(5, "0")}` as GroupId;
}

/** A node that came back with so many jobs. */
function nodeWith(jobs: number, archived: readonly string[] = []): LedgerNode {
  const sites = members.map((node) => ({ node, region: "use1" }));
  const node = new LedgerNode(
    {
      ...{ self: nodeId("n1"), sites, config: LEDGER_NODE_DEFAULTS },
      ...{ boot: "b1", rules: LEDGER_RULES },
    },
    new Random(1),
  );
  const images = new Map<GroupId, GroupImage>();
  for (let i = 0; i < jobs; i++) {
    const views = { knownView: 1 + i, lastNormalView: 1 };
    images.set(groupName(i), { ...EMPTY_IMAGE, epoch: 1, members, ...views });
  }
  const identities = new Map<NodeId, string>([[nodeId("n2"), "its disk"]]);
  node.recover({ images, archived, identities }, NOW, WALL);
  return node;
}

function groupsIn(slice: Uint8Array): number {
  const from = new ByteReader(slice);
  from.uint8();
  return from.varint();
}

function recovered(slices: Iterable<Uint8Array>): LedgerRecovery {
  const recovery = new LedgerRecovery();
  for (const slice of slices) recovery.restore(1, slice);
  expect(recovery.problem).toBeNull();
  return recovery;
}

describe("a snapshot in slices", () => {
  it("holds every group once, at most 128 of them in a slice (CKPT-1)", () => {
    const node = nodeWith(300, ["use1-1-n1-00009"]);
    const slices = [...snapshotSlices(node)];
    expect(slices.map(groupsIn)).toEqual([128, 128, 44]);
    const recovery = recovered(slices);
    expect([...recovery.images().keys()]).toEqual([...node.groups.keys()]);
    expect(recovery.images().get(groupName(299))?.knownView).toBe(300);
    expect([...recovery.archived]).toEqual(["use1-1-n1-00009"]);
    expect([...recovery.identities]).toEqual([["n2", "its disk"]]);
  });

  it("lets a slice be short when its groups are large", () => {
    const node = nodeWith(3);
    const [first] = node.groups.values();
    const data = new Uint8Array(300_000);
    const entry = {
      seq: 0,
      epoch: 1,
      view: 1,
      kind: "op",
      eventId: "e",
      wall: 1,
      logical: 0,
      data,
    };
    first?.replica.state.entries.push(entry as never);
    expect([...snapshotSlices(node)].map(groupsIn)).toEqual([1, 2]);
  });

  it("ends although new groups come between slices, and has all that were there", () => {
    const node = nodeWith(20);
    const slices: Uint8Array[] = [];
    let next = 1_000;
    for (const slice of snapshotSlices(node, 1)) {
      slices.push(slice);
      const founded = { kind: "found", epoch: 1, members } as const;
      const vsr = { kind: "vsr", group: groupName(next++), message: founded } as const;
      const from = { from: nodeId("n2"), identity: "its disk", messages: [vsr] };
      node.take({ kind: "messages", ...from }, NOW, WALL);
    }
    expect(node.groups.size).toBeGreaterThan(30);
    expect(slices.length).toBeLessThan(30);
    expect([...recovered(slices).images().keys()].slice(0, 20)).toEqual(
      Array.from({ length: 20 }, (_, number) => groupName(number)),
    );
  });
});

describe("records after a slice", () => {
  const promise = (view: number): readonly [number, Uint8Array] => {
    const record = { kind: "promise", view } as const;
    const payload = encodeGroupRecord(new ByteWriter(), groupName(0), record);
    return [recordType(record), payload];
  };

  it("are applied when the group's slice does not have them, and only then", () => {
    const recovery = new LedgerRecovery();
    for (const slice of snapshotSlices(nodeWith(2))) recovery.restore(7, slice);
    recovery.apply(6, ...promise(40));
    recovery.apply(7, ...promise(50));
    expect([recovery.applied, recovery.images().get(groupName(0))?.knownView]).toEqual([0, 1]);
    recovery.apply(8, ...promise(60));
    expect([recovery.applied, recovery.images().get(groupName(0))?.knownView]).toEqual([1, 60]);
  });
});
