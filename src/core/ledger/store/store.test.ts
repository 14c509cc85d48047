/** A node's store over files in memory: recovery, checkpoints in slices, full and failing disks. */

import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { encodeJobState } from "../job/state-codec.ts";
import type { FileEffect, FileOperation } from "../log/files.ts";
import { walConfig } from "../log/limits.ts";
import { ANY_IDENTITY } from "../log/segment.ts";
import { MemoryFiles, settle } from "../log/testing/memory-files.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "../node/config.ts";
import { LedgerNode } from "../node/node.ts";
import { snapshotSlices } from "../node/recovery.ts";
import { LedgerStore } from "./store.ts";
import { endedJob } from "./testing/ended-job.ts";
import type { StoreEvent, StoreInput } from "./types.ts";

const WALL = Date.UTC(2026, 0, 31, 12);
const INTERVAL_MS = 1_000;
const self = nodeId("n1");
const sites = ["n1", "n2", "n3"].map((name) => ({ node: nodeId(name), region: "use1" }));

class Bench {
  readonly files: MemoryFiles;
  readonly store: LedgerStore;
  readonly node: LedgerNode;
  readonly opened: Extract<StoreEvent, { kind: "opened" }> | null;
  readonly events: StoreEvent[] = [];
  now = 0;
  /** Called before each slice of a checkpoint. */
  between: () => void = () => {};

  constructor(files = new MemoryFiles()) {
    this.files = files;
    this.store = new LedgerStore({
      identity: ANY_IDENTITY,
      log: { ...walConfig({ segmentBytes: 65_536 }), fullDisk: "wait" },
      checkpoint: { intervalEntries: 1e9, intervalMs: INTERVAL_MS, keptMax: 2 },
      archiveKeepMs: 1e12,
    });
    const config = LEDGER_NODE_DEFAULTS;
    const options = { self, sites, config, boot: "b1", rules: LEDGER_RULES };
    this.node = new LedgerNode(options, new Random(1));
    this.step({ kind: "open" });
    const event = this.events.find(({ kind }) => kind === "opened");
    this.opened = event?.kind === "opened" ? event : null;
    if (this.opened === null) return;
    this.node.recover(this.opened.state, millis(this.now), WALL);
    this.node.start(millis(this.now), WALL, this.opened.replayed === 0 ? "found" : null);
    this.serve();
    this.turn();
  }

  serve(): void {
    const { node } = this;
    const before = (): void => this.between();
    this.store.serve(
      {
        get appends(): number {
          return node.appends;
        },
        *slices() {
          for (const slice of snapshotSlices(node, 8)) {
            yield slice;
            before();
          }
        },
      },
      millis(this.now),
    );
  }

  step(input: StoreInput): void {
    const { store } = this;
    const machine = {
      get wantsTurn(): boolean {
        return store.wantsTurn;
      },
      step: (given: StoreInput) => store.step(given, millis(this.now), WALL),
    };
    settle<StoreInput, StoreEvent>(machine, this.files, input, this.now, (event) => {
      this.events.push(event);
      if (event.kind !== "durable") return;
      this.node.take({ kind: "durable", count: event.count }, millis(this.now), WALL);
      this.turn();
    });
  }

  /** Appends everything the node has emitted to the log. */
  turn(): void {
    let appended = false;
    for (const effect of this.node.flush()) {
      if (effect.kind !== "append") continue;
      this.store.append(effect, millis(this.now));
      appended = true;
    }
    if (appended) this.step({ kind: "tick" });
  }

  /** The next interval passes, and something is written in it. */
  pass(): void {
    this.now += INTERVAL_MS;
    this.node.take({ kind: "tick" }, millis(this.now), WALL);
    this.hear(`n${2 + ((this.now / INTERVAL_MS) % 2)}`, "its disk");
    this.turn();
    this.step({ kind: "tick" });
  }

  /** A peer speaks for the first time: its data directory is written down. */
  hear(from: string, identity: string): void {
    const message = { kind: "answer", id: 1, answer: { kind: "notFound", jobId: "x" } } as const;
    const input = { from: nodeId(from), identity, messages: [message] };
    this.node.take({ kind: "messages", ...input }, millis(this.now), WALL);
  }

  has(kind: StoreEvent["kind"]): boolean {
    return this.events.some((event) => event.kind === kind);
  }
}

describe("a node's store", () => {
  it("comes back from its log alone", () => {
    const first = new Bench();
    expect(first.node.groups.size).toBeGreaterThan(20);
    const again = new Bench(first.files);
    expect([...(again.opened?.state.images.keys() ?? [])]).toEqual([...first.node.groups.keys()]);
    expect(again.opened?.checkpoint).toBeNull();
  });

  it("takes a checkpoint in slices, with records between them, and comes back from it", () => {
    const first = new Bench();
    let names = 0;
    first.between = () => {
      first.hear(`n${2 + (names % 2)}`, `disk ${names++}`);
      first.turn();
    };
    first.pass();
    const created = first.events.find(({ kind }) => kind === "checkpointCreated");
    if (created?.kind !== "checkpointCreated") throw new Error("no checkpoint");
    expect(created.header.slices).toBe(Math.ceil(first.node.groups.size / 8) + 1);
    expect(created.header.throughLsn).toBeGreaterThan(created.header.localLsn);
    const again = new Bench(first.files);
    expect(again.opened?.checkpoint).toEqual(created.header);
    const images = [...first.node.groups].map(([id, { replica }]) => [id, replica.image()]);
    expect([...(again.opened?.state.images ?? [])]).toEqual(images);
    expect(again.opened?.state.identities).toEqual(first.node.identities);
  });

  const isAside = (path: string): boolean => path.endsWith(".ckpt.tmp");
  const isArchive = (path: string): boolean => path.startsWith("archive/");
  const pathOf = (operation: FileOperation): string =>
    "path" in operation ? operation.path : "from" in operation ? operation.from : "";
  const STEPS = [
    ["create", isAside],
    ["write", isAside],
    ["sync", isAside],
    ["rename", isAside],
    ["create", isArchive],
    ["write", isArchive],
    ["sync", isArchive],
  ] as const;

  it.each(STEPS)("makes a checkpoint later when the disk is full (%s)", (failing, concerns) => {
    const bench = new Bench();
    const job = endedJob("a", WALL);
    bench.store.archive.add(job.jobId, encodeJobState(job), WALL);
    bench.files.fault = (operation) =>
      operation.kind === failing && concerns(pathOf(operation)) ? "ENOSPC" : null;
    bench.pass();
    expect(bench.has("checkpointFailed")).toBe(true);
    expect([bench.has("checkpointCreated"), bench.has("failed")]).toEqual([false, false]);
    expect([...bench.files.files.keys()].filter(isAside)).toEqual([]);
    bench.files.fault = () => null;
    bench.pass();
    expect(bench.has("checkpointCreated")).toBe(true);
    const { opened } = new Bench(bench.files);
    expect([opened?.checkpoint !== null, opened?.state.archived.has(job.jobId)]).toEqual([
      true,
      true,
    ]);
  });

  it.each(STEPS)("ends at any other error of the disk (%s)", (failing, concerns) => {
    const bench = new Bench();
    const job = endedJob("a", WALL);
    bench.store.archive.add(job.jobId, encodeJobState(job), WALL);
    bench.files.fault = (operation) =>
      operation.kind === failing && concerns(pathOf(operation)) ? "EIO" : null;
    bench.pass();
    expect(bench.events.at(-1)).toMatchObject({ kind: "failed", code: "EIO" });
  });

  it("refuses a log that does not reach its checkpoint, and changes nothing", () => {
    const bench = new Bench();
    bench.pass();
    const { files } = bench.files;
    for (const path of files.keys()) if (path.endsWith(".wal")) files.delete(path);
    bench.files.log.length = 0;
    const again = new Bench(bench.files);
    expect(again.events.at(-1)).toMatchObject({ kind: "refused", refusal: { code: "LOG_GAP" } });
    const changes = bench.files.log.filter(
      ({ kind }) => !["list", "read", "release"].includes(kind),
    );
    expect(changes).toEqual([]);
  });

  it("reads archived jobs one at a time, and none while a checkpoint writes them", () => {
    const bench = new Bench();
    const jobs = ["a", "b"].map((name) => endedJob(name, WALL));
    for (const job of jobs) bench.store.archive.add(job.jobId, encodeJobState(job), WALL);
    bench.pass();
    const later = endedJob("c", WALL);
    bench.store.archive.add(later.jobId, encodeJobState(later), WALL);
    bench.files.log.length = 0;
    // A checkpoint and two reads at once, each result of the disk after all earlier requests.
    const open: FileEffect[] = [];
    const take = (input: StoreInput): void => {
      for (const effect of bench.store.step(input, millis(bench.now), WALL)) {
        if (effect.kind === "file") open.push(effect);
        else bench.events.push(effect);
      }
    };
    take({ kind: "checkpoint", id: 1 });
    for (const { jobId } of jobs) take({ kind: "readArchive", jobId });
    for (let count = 0; count < 1_000; count++) {
      const effect = open.shift();
      if (effect !== undefined) {
        take({ kind: "done", id: effect.id, result: bench.files.perform(effect.operation) });
      } else if (bench.store.wantsTurn) take({ kind: "turn" });
    }
    const states = bench.events.flatMap((event) =>
      event.kind === "archivedState" ? [event.state] : [],
    );
    expect(states).toEqual(jobs);
    expect(bench.store.archive.places.has(later.jobId)).toBe(true);
    const used = bench.files.log.filter((one) => isArchive(pathOf(one))).map(({ kind }) => kind);
    expect(used).toEqual(["read", "release", "read", "release", "write", "sync"]);
  });

  it("makes one more checkpoint on request, and closes behind it", () => {
    const bench = new Bench();
    bench.step({ kind: "checkpoint", id: 5 });
    bench.step({ kind: "close" });
    const kinds = bench.events.map(({ kind }) => kind);
    expect(kinds.indexOf("checkpointEnded")).toBeGreaterThan(kinds.indexOf("checkpointCreated"));
    expect(kinds.at(-1)).toBe("closed");
    expect(new Bench(bench.files).opened?.replayed).toBe(0);
  });
});
