import { describe, expect, it } from "vitest";
import type { LiveRun, RunControl, RunView } from "../../core/load/results/live.ts";
import type { LogFields } from "../../host/ports/log.ts";
import { LoggedView } from "./run-log.ts";

class Recorder implements RunView {
  readonly calls: string[] = [];
  control: (command: RunControl) => void = () => undefined;
  start(control: (command: RunControl) => void): void {
    this.control = control;
    this.calls.push("start");
  }
  update(): void {
    this.calls.push("update");
  }
  message(line: string): void {
    this.calls.push(line);
  }
  finish(): void {
    this.calls.push("finish");
  }
}

/** Only the fields that the log reads. */
const live = (phase: string, elapsedSeconds: number, status: string): LiveRun =>
  ({
    ...{ phase, elapsedSeconds, ratePerSecond: 10, failedPerSecond: 0, scale: 1 },
    workflows: [{ name: "w", status }],
  }) as unknown as LiveRun;

describe("the log of a run", () => {
  it("has changes once, progress every five seconds, and passes everything on", () => {
    const lines: string[] = [];
    const controls: RunControl[] = [];
    const log = {
      enabled: () => true,
      event: (_: string, event: string, fields: LogFields) =>
        lines.push(`${event} ${JSON.stringify(fields)}`),
    };
    const inner = new Recorder();
    const view = new LoggedView(log, inner);
    view.start((command) => controls.push(command));
    view.update(live("running", 1, "running"));
    view.update(live("running", 4, "running"));
    view.update(live("running", 6, "running"));
    inner.control({ kind: "stop" });
    view.message("hello");
    view.update(live("stopping", 7, "done"));
    view.finish(undefined);
    expect(lines).toEqual([
      "run.started {}",
      'run.phase {"from":null,"to":"running","elapsedSeconds":1}',
      'run.workflow {"workflow":"w","from":null,"to":"running"}',
      'run.progress {"elapsedSeconds":6,"ratePerSecond":10,"failedPerSecond":0}',
      'run.control {"kind":"stop"}',
      'run.message {"text":"hello"}',
      'run.phase {"from":"running","to":"stopping","elapsedSeconds":7}',
      'run.workflow {"workflow":"w","from":"running","to":"done"}',
      "run.broken {}",
    ]);
    expect(controls).toEqual([{ kind: "stop" }]);
    expect(inner.calls).toEqual([
      ...["start", "update", "update", "update", "hello", "update", "finish"],
    ]);
  });
});
