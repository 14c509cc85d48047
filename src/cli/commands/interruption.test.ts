import { describe, expect, it } from "vitest";
import { Interruption, QUESTION } from "./interruption.ts";

class Terminal {
  readonly isTTY: boolean;
  isRaw: boolean;
  #listeners = new Set<(chunk: string) => void>();

  constructor(isTTY: boolean, isRaw = false) {
    this.isTTY = isTTY;
    this.isRaw = isRaw;
  }

  setRawMode(raw: boolean): void {
    this.isRaw = raw;
  }

  on(_event: "data", listener: (chunk: string) => void): void {
    this.#listeners.add(listener);
  }

  off(_event: "data", listener: (chunk: string) => void): void {
    this.#listeners.delete(listener);
  }

  resume(): void {}

  pause(): void {}

  type(text: string): void {
    for (const listener of this.#listeners) listener(text);
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }
}

function interrupted(keyboard: Terminal): {
  readonly interruption: Interruption;
  readonly events: string[];
} {
  const events: string[] = [];
  const interruption = new Interruption({
    keyboard,
    say: (line) => events.push(line === QUESTION ? "asked" : `said ${line.split(":")[0]}`),
    cancel: () => events.push("cancelled"),
    leave: (how) => events.push(`left ${how}`),
  });
  return { interruption, events };
}

describe("Ctrl-C on a job that runs elsewhere", () => {
  it("asks on a terminal, and follows the answer", () => {
    for (const [key, event] of [
      ["c", ["said cancelling", "cancelled"]],
      ["d", ["left detached"]],
      ["g", ["said going on"]],
    ] as const) {
      const terminal = new Terminal(true);
      const { events, interruption } = interrupted(terminal);
      interruption.interrupt();
      expect(terminal.isRaw).toBe(true);
      terminal.type("x");
      terminal.type(key);
      expect(events).toEqual(["asked", ...event]);
      expect([terminal.isRaw, terminal.hasListeners]).toEqual([false, false]);
    }
  });

  it("asks again after continuing", () => {
    const terminal = new Terminal(true);
    const { events, interruption } = interrupted(terminal);
    interruption.interrupt();
    terminal.type("g");
    interruption.interrupt();
    expect(events).toEqual(["asked", "said going on", "asked"]);
  });

  it("cancels the second time, and ends the command the third time", () => {
    const terminal = new Terminal(true);
    const { events, interruption } = interrupted(terminal);
    interruption.interrupt();
    // A raw terminal sends no signal.
    terminal.type("\x03");
    expect(events).toEqual(["asked", "said cancelling", "cancelled"]);
    interruption.interrupt();
    expect(events.at(-1)).toBe("left cancelling");
  });

  it("leaves the keys of a live picture alone, which sends signals itself", () => {
    const terminal = new Terminal(true, true);
    const { events, interruption } = interrupted(terminal);
    interruption.interrupt();
    terminal.type("\x03");
    expect(events).toEqual(["asked"]);
    interruption.interrupt();
    expect(events).toEqual(["asked", "said cancelling", "cancelled"]);
    expect([terminal.isRaw, terminal.hasListeners]).toEqual([true, false]);
  });

  it("cancels on SIGTERM without asking, and ends the command on the second signal of either kind", () => {
    for (const isTTY of [true, false])
      for (const second of ["cancel", "interrupt"] as const) {
        const { events, interruption } = interrupted(new Terminal(isTTY));
        interruption.cancel();
        interruption[second]();
        expect(events).toEqual(["said cancelling", "cancelled", "left cancelling"]);
      }
  });

  it("cancels at once without a terminal, and ends the command the second time", () => {
    const { events, interruption } = interrupted(new Terminal(false));
    interruption.interrupt();
    interruption.interrupt();
    expect(events).toEqual(["said cancelling", "cancelled", "left cancelling"]);
  });
});
