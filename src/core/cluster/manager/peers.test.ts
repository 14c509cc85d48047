import { expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Peers } from "./peers.ts";

it("shows whether a peer is reachable and accepts work, as last reported", () => {
  const peers = new Peers();
  const peer = nodeId("g2");
  expect(peers.view("g2")).toEqual({ status: "lost", version: "" });
  peers.hear({ kind: "peerDrains", peer, drains: true });
  expect(peers.view("g2").status).toBe("lost");
  peers.hear({ kind: "peer", peer, up: true, version: "1.2.0" });
  expect([peers.view("g2"), peers.size]).toEqual([{ status: "draining", version: "1.2.0" }, 1]);
  peers.hear({ kind: "peerDrains", peer, drains: false });
  expect(peers.view("g2").status).toBe("alive");
  peers.hear({ kind: "peer", peer, up: false, version: "1.2.0" });
  expect([peers.view("g2").status, peers.size]).toEqual(["lost", 0]);
});
