/** Lifecycle of a process, with the exit itself replaced: its order and its codes. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AuditRequester } from "../ports/audit.ts";
import { ServiceProcess, type Serving, startProblem } from "./service-process.ts";

class LastLines {
  readonly lines: string[] = [];
  write(line: string): void {
    this.lines.push(line);
  }
  async drained(): Promise<void> {
    this.lines.push("drained");
  }
  get events(): readonly string[] {
    return this.lines.map((line) =>
      line === "drained" ? line : (JSON.parse(line) as { event: string }).event,
    );
  }
}

let lines: LastLines;
let exits: number[];
let ended: Promise<number>;
let service: ServiceProcess;
const uncaught = process.listeners("uncaughtException");
const unhandled = process.listeners("unhandledRejection");

beforeEach(() => {
  lines = new LastLines();
  exits = [];
  let onEnd: (code: number) => void = () => undefined;
  ended = new Promise((resolve) => {
    onEnd = resolve;
  });
  service = new ServiceProcess({
    service: "agent",
    node: "n1",
    logLevel: "info",
    logLines: lines,
    exit: (code) => {
      exits.push(code);
      onEnd(code);
    },
  });
});
afterEach(() => {
  for (const listener of process.listeners("uncaughtException")) {
    if (!uncaught.includes(listener)) process.off("uncaughtException", listener);
  }
  for (const listener of process.listeners("unhandledRejection")) {
    if (!unhandled.includes(listener)) process.off("unhandledRejection", listener);
  }
});

describe("a process that serves", () => {
  it("stops its service, then its background work, writes its last lines and ends with 0", async () => {
    const order: string[] = [];
    service.background.run("loop", async ({ signal }) => {
      await service.background.pause(60_000, signal);
      order.push("background");
    });
    const stop = async () => {
      order.push("service");
      return undefined;
    };
    service.serve({ stop, stopMsMax: 10_000 });
    service.stop("SIGTERM");
    expect(await ended).toBe(0);
    expect(order).toEqual(["service", "background"]);
    expect(lines.events).toEqual(["agent.stopping", "agent.stopped", "drained"]);
  });

  it("passes the requester to its service: the signal, unless there is another", async () => {
    const asked: AuditRequester[] = [];
    const serving: Serving = {
      stop: async (requester) => {
        asked.push(requester);
        return undefined;
      },
      stopMsMax: 10_000,
      reload: (requester) => asked.push(requester),
    };
    service.serve(serving);
    service.reload();
    service.stop("SIGTERM");
    await ended;
    const other = new ServiceProcess({
      ...{ service: "agent", node: "n2", logLevel: "silent", logLines: lines },
      exit: () => undefined,
    });
    other.serve(serving);
    const operator = { kind: "operator", name: "alice" } as const;
    other.stop("asked over the interface", operator);
    expect(asked).toEqual([
      { kind: "system", name: "SIGHUP" },
      { kind: "system", name: "SIGTERM" },
      operator,
    ]);
  });

  it("ends with 1 when the stop fails or takes too long", async () => {
    service.serve({ stop: () => Promise.reject(new Error("no")), stopMsMax: 10_000 });
    service.stop("SIGTERM");
    expect(await ended).toBe(1);
    expect(lines.events).toEqual(["agent.stopping", "agent.stopFailed", "drained"]);
  });

  it("does not wait for a stop that never ends", async () => {
    service.serve({ stop: () => new Promise(() => undefined), stopMsMax: 1 });
    service.stop("SIGTERM");
    expect(await ended).toBe(1);
    expect(lines.events).toEqual(["agent.stopping", "agent.stopLate", "drained"]);
  });

  it("ends at once with 130 on a second stop, or before it serves", () => {
    service.stop("SIGINT");
    expect(exits).toEqual([130]);
    service.serve({ stop: () => new Promise(() => undefined), stopMsMax: 10_000 });
    service.stop("SIGINT");
    service.stop("SIGINT");
    expect(exits).toEqual([130, 130]);
  });

  it("ends with 70 at a defect, and with the first reason only", async () => {
    service.fatal("an invariant is broken", new Error("a"));
    service.fatal("and another", new Error("b"));
    expect(await ended).toBe(70);
    await new Promise((resolve) => setImmediate(resolve));
    expect(exits).toEqual([70]);
  });

  it("reloads at SIGHUP and keeps the old state when that fails; without a reload it stops", async () => {
    let reloads = 0;
    const reload = (): void => {
      if (++reloads === 2) throw new Error("no such file");
    };
    service.serve({ stop: async () => undefined, stopMsMax: 10_000, reload });
    service.reload();
    service.reload();
    expect(lines.events).toEqual(["keys.notReloaded"]);
    service.serve({ stop: async () => undefined, stopMsMax: 10_000 });
    service.reload();
    expect(await ended).toBe(0);
  });

  it("advises about an address that cannot be bound", () => {
    const error = Object.assign(new Error("listen"), { address: "127.0.0.1", port: 1 });
    const of = (code: string): string => startProblem(Object.assign(error, { code }), "--bind");
    expect(of("EADDRINUSE")).toBe("127.0.0.1:1 is taken: is this node running already? See --bind");
    expect(of("EADDRNOTAVAIL")).toContain("not an address of this machine; see --bind");
    expect(startProblem("odd", "")).toBe("odd");
  });
});
