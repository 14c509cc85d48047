import { describe, expect, it } from "vitest";
import type { RunControl } from "../core/load/results/live.ts";
import { FullView, MESSAGES_MAX } from "./full-view.ts";
import type { ReportOpening } from "./ports.ts";
import { ENTER, LEAVE } from "./screen.ts";
import { syntheticRun, syntheticSummary } from "./testing/synthetic.ts";
import { TestHost, TestKeyboard, TestTerminal } from "./testing/terminal.ts";

const END = { summary: syntheticSummary(30), files: ["out/report.html"] };

function started(
  columns = 80,
  rows = 24,
  report: ReportOpening = { isWanted: false, problem: null },
) {
  const stdout = new TestTerminal(columns, rows);
  const stdin = new TestKeyboard();
  const host = new TestHost();
  const controls: RunControl[] = [];
  const env = { TERM: "xterm-256color" };
  const view = new FullView({ mode: "full", stdout, stdin, env, host, report });
  view.start((command) => controls.push(command));
  return { stdout, stdin, host, controls, view };
}

function frames(text: string): number {
  return text.split("\x1b[?2026h").length - 1;
}

describe("the terminal", () => {
  it("is taken over at the start and restored at the end, with the result on the normal screen", async () => {
    const { stdout, stdin, host, view } = started(120, 40);
    expect(stdout.written.startsWith(ENTER)).toBe(true);
    expect(stdin.raw).toBe(true);
    view.update(syntheticRun(16));
    host.advance(100);
    await stdout.screen();
    expect(stdout.alternate).toBe(true);
    view.finish(END);
    const screen = (await stdout.screen()).join("\n");
    expect(stdout.alternate).toBe(false);
    expect(screen).toContain("out/report.html");
    expect(stdout.written.indexOf(LEAVE)).toBeLessThan(stdout.written.indexOf("FAILED"));
    expect(stdin.raw).toBe(false);
    expect(stdin.flowing).toBe(false);
    expect(host.exitTasks.size).toBe(0);
    expect(host.continueTasks.size).toBe(0);
    expect(host.pending).toBe(0);
  });

  it("is restored after an error too, with the messages that would be lost", () => {
    const { stdout, view } = started();
    view.message("connecting to nowhere");
    view.finish(undefined);
    expect(stdout.written.endsWith(LEAVE)).toBe(false);
    expect(stdout.written).toContain(LEAVE);
    expect(stdout.written.slice(stdout.written.indexOf(LEAVE))).toContain("connecting to nowhere");
  });

  it("is restored by the end of the process without finish, and only once", () => {
    const { stdout, stdin, host, view } = started();
    for (const task of [...host.exitTasks]) task();
    expect(stdout.written.endsWith(LEAVE)).toBe(true);
    expect(stdin.raw).toBe(false);
    view.finish(undefined);
    expect(stdout.written.split(LEAVE).length - 1).toBe(1);
  });

  it("is taken over again after the process was stopped and continued", async () => {
    const { stdout, host, view } = started();
    view.update(syntheticRun(16));
    host.advance(100);
    for (const task of host.continueTasks) task();
    host.advance(100);
    expect(stdout.written.split(ENTER).length - 1).toBe(2);
    expect((await stdout.screen())[0]).toContain("HYPERSCALE");
  });

  it("does not disturb the run when it disappears", () => {
    const { stdout, host, view } = started();
    stdout.emit("error");
    const before = stdout.written;
    view.update(syntheticRun(16));
    host.advance(1_000);
    expect(stdout.written).toBe(before);
  });
});

describe("frames", () => {
  it("are drawn at most twenty times per second, however many updates there are", () => {
    const { stdout, host, view } = started();
    host.advance(100);
    stdout.written = "";
    for (let ms = 0; ms < 995; ms += 5) {
      view.update(syntheticRun(10 + ms / 1_000));
      host.advance(5);
    }
    expect(frames(stdout.written)).toBeLessThanOrEqual(20);
    expect(frames(stdout.written)).toBeGreaterThan(5);
  });

  it("are dropped while the terminal is behind, and the newest follows", async () => {
    const { stdout, host, view } = started();
    view.update(syntheticRun(10));
    stdout.accepting = false;
    host.advance(100);
    const before = stdout.written;
    for (let elapsed = 11; elapsed < 20; elapsed++) {
      view.update(syntheticRun(elapsed));
      host.advance(100);
    }
    expect(stdout.written).toBe(before);
    stdout.accepting = true;
    stdout.emit("drain");
    host.advance(100);
    expect((await stdout.screen())[0]).toContain("00:19 / 00:30");
  });

  it("follow a new size of the terminal", async () => {
    const { stdout, host, view } = started();
    view.update(syntheticRun(16));
    host.advance(100);
    stdout.resize(120, 40);
    host.advance(100);
    const screen = await stdout.screen();
    expect(screen[0]?.length).toBe(120);
    expect(screen[39]).toContain("q quit with results");
  });

  it("assume 80×24 on a terminal that does not know its size", () => {
    const { stdout, host, view } = started(0, 0);
    view.update(syntheticRun(16));
    host.advance(100);
    expect(stdout.written).toContain("\x1b[24;1H");
  });

  it("between whole pictures still move the clock", async () => {
    const { stdout, host, view } = started();
    view.update(syntheticRun(9.9));
    host.advance(60);
    view.update(syntheticRun(10.1));
    host.advance(60);
    expect((await stdout.screen())[0]).toContain("00:10 / 00:30");
  });
});

describe("keys", () => {
  it("control the run", () => {
    const { stdin, host, controls, view } = started();
    view.update(syntheticRun(16));
    stdin.type("p");
    view.update({ ...syntheticRun(16), phase: "paused" });
    stdin.type("p+");
    stdin.type("-q");
    expect(controls).toEqual([
      { kind: "pause" },
      { kind: "resume" },
      { kind: "scale", factor: 1.1 },
      { kind: "scale", factor: 0.99 },
      { kind: "stop" },
    ]);
    expect(host.interrupts).toBe(0);
  });

  it("make Ctrl-C an interrupt, since a raw terminal sends none", () => {
    const { stdin, host, controls } = started();
    stdin.type("\x03");
    expect(host.interrupts).toBe(1);
    expect(controls).toEqual([]);
  });

  it("open and close the help page and choose the step", async () => {
    const { stdout, stdin, host, view } = started();
    view.update(syntheticRun(16));
    stdin.type("?");
    host.advance(60);
    expect((await stdout.screen()).join("\n")).toContain("─ keys ─");
    stdin.type("?\x1b[B");
    host.advance(60);
    const screen = (await stdout.screen()).join("\n");
    expect(screen).not.toContain("─ keys ─");
    expect(screen).toContain("▸ browse › search");
  });

  it("request the report at the end, or say why no browser can show it", async () => {
    const opening = { isWanted: false, problem: null };
    const { stdout, stdin, host, view } = started(80, 24, opening);
    view.update(syntheticRun(16));
    stdin.type("o");
    host.advance(60);
    expect(opening.isWanted).toBe(true);
    expect((await stdout.screen()).join("\n")).toContain("the report opens in the browser");
    stdin.type("o");
    expect(opening.isWanted).toBe(false);

    const none = { isWanted: false, problem: "DISPLAY is not set" };
    const blind = started(80, 24, none);
    blind.view.update(syntheticRun(16));
    blind.stdin.type("o");
    blind.host.advance(60);
    expect(none.isWanted).toBe(false);
    expect((await blind.stdout.screen()).join("\n")).toContain("the end names the report's file");
  });

  it("are confirmed on the screen for a short time", async () => {
    const { stdout, stdin, host, view } = started();
    view.update(syntheticRun(16));
    stdin.type("+");
    host.advance(60);
    expect((await stdout.screen()).join("\n")).toContain("load + 10 %");
    host.advance(3_000);
    expect((await stdout.screen()).join("\n")).not.toContain("load + 10 %");
  });
});

describe("messages", () => {
  it("have their own area and cannot break the picture", async () => {
    const { stdout, host, view } = started();
    view.update(syntheticRun(16));
    view.message("\x1b[2J\x1b[10;10Hboo\nsecond line");
    host.advance(60);
    const screen = await stdout.screen();
    expect(screen[0]).toContain("HYPERSCALE");
    expect(screen[22]).toBe("› second line");
  });

  it("are kept in bounded number, and the end says how many there were", () => {
    const { stdout, view } = started();
    for (let index = 0; index < MESSAGES_MAX * 3; index++) view.message(`line ${index}`);
    stdout.written = "";
    view.finish(END);
    expect(stdout.written).toContain("the last 20 of 300");
    expect(stdout.written).toContain("line 299");
  });
});
