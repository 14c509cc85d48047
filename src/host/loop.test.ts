/** The driver on the real event loop; tests order, never duration. */

import { createSocket } from "node:dgram";
import { describe, expect, it } from "vitest";
import { type Millis, millis } from "../core/base/brand.ts";
import { type BatchMachine, Loop, type Machine } from "./loop.ts";
import { nodeClock } from "./node-clock.ts";

type Input = "tick" | "packet" | "again";

/** Records its inputs; due once. */
class Recorder implements Machine<Input, string> {
  readonly received: Input[] = [];
  dueAt: Millis | null;
  constructor(dueAt: Millis | null) {
    this.dueAt = dueAt;
  }
  step(input: Input): readonly string[] {
    this.received.push(input);
    if (input === "tick") this.dueAt = null;
    return [`${input} 1`, `${input} 2`];
  }
  nextDeadline(): Millis | null {
    return this.dueAt;
  }
}

const inMs = (ms: number): Millis => millis(nodeClock.now() + ms);
const fail = (error: unknown): never => {
  throw error;
};

describe("the loop", () => {
  it("reads pending input before it evaluates a deadline that passed in a stall", async () => {
    for (let trial = 0; trial < 5; trial++) {
      const receiver = createSocket("udp4");
      const sender = createSocket("udp4");
      await new Promise<void>((resolve) => receiver.bind(0, "127.0.0.1", resolve));
      await new Promise<void>((resolve) => {
        sender.connect(receiver.address().port, "127.0.0.1", resolve);
      });
      const machine = new Recorder(inMs(15));
      const loop = new Loop(nodeClock, fail);
      const driven = loop.add<Input, string>(machine, "tick", () => undefined);
      receiver.on("message", () => driven.push("packet"));
      driven.push("again");
      // A stall in the check phase is the bad case: afterwards expired timers run before the sockets.
      await new Promise<void>((resolve) =>
        setImmediate(() => {
          sender.send("ack");
          const end = performance.now() + 50;
          while (performance.now() < end) {}
          resolve();
        }),
      );
      while (!machine.received.includes("tick"))
        await new Promise((resolve) => setTimeout(resolve, 1));
      expect(machine.received).toEqual(["again", "packet", "tick"]);
      expect(loop.lag.maxMs).toBeGreaterThan(10);
      loop.stop();
      receiver.close();
      sender.close();
    }
  });

  it("queues an input caused by an effect behind the effects before it", () => {
    const machine = new Recorder(null);
    const ran: string[] = [];
    const loop = new Loop(nodeClock, fail);
    const driven = loop.add<Input, string>(machine, "tick", (effect) => {
      ran.push(effect);
      if (effect === "packet 1") driven.push("again");
      return undefined;
    });
    driven.push("packet");
    expect(ran).toEqual(["packet 1", "packet 2", "again 1", "again 2"]);
    loop.stop();
  });

  it("passes a broken invariant to the handler that ends the process, and stops", () => {
    const defects: unknown[] = [];
    const loop = new Loop(nodeClock, (error) => defects.push(error));
    const machine = new Recorder(null);
    const driven = loop.add<Input, string>(machine, "tick", () => {
      throw new Error("an invariant broke");
    });
    driven.push("packet");
    driven.push("again");
    expect(defects).toEqual([new Error("an invariant broke")]);
    expect(machine.received).toEqual(["packet"]);
  });
});

/** Collects inputs until it is flushed; due once. */
class Collector implements BatchMachine<Input, string> {
  #collected: Input[] = [];
  dueAt: Millis | null = null;
  broken = false;
  take(input: Input): void {
    if (this.broken) throw new Error("an invariant broke");
    if (input === "tick") this.dueAt = null;
    this.#collected.push(input);
  }
  flush(): readonly string[] {
    const batch = this.#collected.join("+");
    this.#collected = [];
    return batch === "" ? [] : [batch];
  }
  nextDeadline(): Millis | null {
    return this.dueAt;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the loop in batches", () => {
  it("executes all effects of one turn together, and those they cause in the next", async () => {
    const ran: string[] = [];
    let turns = 0;
    const loop = new Loop(nodeClock, fail);
    const driven = loop.addBatched<Input, string>(new Collector(), "tick", {
      run: (effect) => {
        ran.push(effect);
        if (effect === "packet+packet") driven.push("again");
      },
      onTurn: () => turns++,
    });
    driven.push("packet");
    driven.push("packet");
    expect(ran).toEqual([]);
    await turn();
    expect([ran, turns]).toEqual([["packet+packet"], 1]);
    await turn();
    expect([ran, turns]).toEqual([["packet+packet", "again"], 2]);
    driven.push("packet");
    driven.flush();
    expect(ran.at(-1)).toBe("packet");
    loop.stop();
  });

  it("ticks a machine whose deadline has come, and measures how late it was", async () => {
    const ran: string[] = [];
    const machine = new Collector();
    machine.dueAt = inMs(5);
    const loop = new Loop(nodeClock, fail);
    const run = (effect: string): void => {
      ran.push(effect);
    };
    loop.addBatched<Input, string>(machine, "tick", { run, onTurn: () => undefined }).flush();
    const end = performance.now() + 20;
    while (performance.now() < end) {}
    while (ran.length === 0) await turn();
    expect(ran).toEqual(["tick"]);
    expect(loop.takeLagMs()).toBeGreaterThan(5);
    expect(loop.takeLagMs()).toBe(0);
    loop.stop();
  });

  it("stops at a defect", async () => {
    const defects: unknown[] = [];
    const machine = new Collector();
    const loop = new Loop(nodeClock, (error) => defects.push(error));
    const driven = loop.addBatched<Input, string>(machine, "tick", {
      run: () => undefined,
      onTurn: () => undefined,
    });
    machine.broken = true;
    driven.push("packet");
    machine.broken = false;
    driven.push("packet");
    await turn();
    expect(defects).toHaveLength(1);
    expect(machine.flush()).toEqual([]);
  });
});
