/** Background work on a simulated clock; tests order and ownership. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Background } from "./background.ts";

let errors: string[];
let background: Background;

beforeEach(() => {
  vi.useFakeTimers();
  errors = [];
  background = new Background((name, error) => errors.push(`${name}: ${error}`));
});
afterEach(() => vi.useRealTimers());

const names = (): readonly string[] =>
  background.list().map(({ name, kind, state }) => `${name} ${kind} ${state}`);

describe("background work", () => {
  it("repeats until it is cancelled, once", () => {
    let turns = 0;
    const work = background.every("beat", 100, () => turns++);
    vi.advanceTimersByTime(350);
    expect(turns).toBe(3);
    expect(names()).toEqual(["beat every waiting"]);
    expect(work.cancel()).toBe(true);
    expect(work.cancel()).toBe(false);
    vi.advanceTimersByTime(1_000);
    expect(turns).toBe(3);
    expect(names()).toEqual([]);
  });

  it("does not begin a turn while the previous one is under way", async () => {
    let begun = 0;
    let finish = (): void => undefined;
    background.every("slow", 100, () => {
      begun++;
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    vi.advanceTimersByTime(500);
    expect(begun).toBe(1);
    finish();
    await vi.advanceTimersByTimeAsync(100);
    expect(begun).toBe(2);
  });

  it("runs once later, and says when", () => {
    let done = false;
    background.after("later", 1_000, () => {
      done = true;
    });
    const [view] = background.list();
    expect(Date.parse(view?.next ?? "") - Date.parse(view?.since ?? "")).toBe(1_000);
    vi.advanceTimersByTime(1_000);
    expect([done, names()]).toEqual([true, []]);
  });

  it("reports and keeps errors, thrown or rejected, and goes on", async () => {
    background.run("thrown", () => {
      throw new Error("a");
    });
    background.run("rejected", async () => {
      throw new Error("b");
    });
    let turns = 0;
    background.every("failing beat", 10, () => {
      turns++;
      throw new Error("c");
    });
    await vi.advanceTimersByTimeAsync(20);
    expect(turns).toBe(2);
    expect(errors.slice(0, 2)).toEqual(["thrown: Error: a", "rejected: Error: b"]);
    const failed = background.list().filter(({ state }) => state === "failed");
    expect(failed.map(({ name, error }) => `${name} ${error}`)).toEqual([
      "thrown a",
      "rejected b",
      "failing beat c",
      "failing beat c",
    ]);
    for (let i = 0; i < 100; i++) await vi.advanceTimersByTimeAsync(10);
    expect(background.list().length).toBe(33);
  });

  it("aborts, waits and names work that did not end; begins nothing afterwards (AD-2, NET-6)", async () => {
    const ended: string[] = [];
    background.after("never", 60_000, () => ended.push("never"));
    background.run("obedient", async ({ signal }) => {
      await background.pause(60_000, signal);
      ended.push("obedient");
    });
    background.run("deaf", () => new Promise(() => undefined));
    const stopped = background.stop(500);
    await vi.advanceTimersByTimeAsync(500);
    expect(await stopped).toEqual(["deaf"]);
    expect(ended).toEqual(["obedient"]);
    background.run("too late", () => ended.push("too late"));
    expect(background.after("too late", 1, () => undefined).cancel()).toBe(true);
    await background.pause(60_000);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ended).toEqual(["obedient"]);
    expect(errors).toEqual([]);
  });

  it("gives work that is cancelled from inside its signal, and reports no error for it", async () => {
    background.run("self", async (work) => {
      work.cancel();
      expect(work.signal.aborted).toBe(true);
      throw new Error("aborted");
    });
    await vi.advanceTimersByTimeAsync(0);
    expect([errors, names()]).toEqual([[], []]);
  });
});
