import { describe, expect, it } from "vitest";
import { address } from "../../base/ids.ts";
import { PEER_CACHE_MAX, PeerCache, readCachedPeers } from "./peer-cache.ts";

const A = address("a:1");
const B = address("b:1");

describe("the peer cache", () => {
  // BOOT-7
  it("puts the most reliable peer first and forgets one that fails as often as it succeeded", () => {
    const cache = new PeerCache(1_000);
    cache.succeeded(A, 0);
    cache.succeeded(B, 1);
    cache.succeeded(A, 2);
    expect(cache.candidates(10).map((peer) => peer.address)).toEqual([A, B]);
    cache.failed(A);
    cache.failed(A);
    expect(cache.candidates(10).map((peer) => peer.address)).toEqual([B]);
  });

  it("leaves out what is too old and stays within its bound", () => {
    const cache = new PeerCache(1_000);
    for (let i = 0; i < 2 * PEER_CACHE_MAX; i++) cache.succeeded(address(`h:${i + 1}`), i);
    expect(cache.candidates(255)).toHaveLength(PEER_CACHE_MAX);
    expect(cache.candidates(5_000)).toEqual([]);
  });

  it("reads back what it wrote and nothing else", () => {
    const cache = new PeerCache(1_000);
    cache.succeeded(A, 5);
    const written = JSON.parse(JSON.stringify(cache.candidates(5))) as unknown;
    expect(readCachedPeers(written)).toEqual(cache.candidates(5));
    for (const rubbish of [null, 7, "x", {}, [null], [{ address: 1 }], [{ address: "" }]]) {
      expect(readCachedPeers(rubbish)).toEqual([]);
    }
  });
});
