import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { warnOfExposure } from "./secret-exposure.ts";

describe("a file with secrets", () => {
  it("triggers a warning while others can read or write it, and none otherwise", () => {
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-exposure-"));
    const file = join(directory, "secret");
    writeFileSync(file, "Zk3-u7Qp9_xW2vLr8Tn5\n");
    const warningsAt = (mode: number): readonly unknown[] => {
      const lines: unknown[] = [];
      chmodSync(file, mode);
      warnOfExposure(file, {
        enabled: () => true,
        event: (...line: readonly unknown[]) => lines.push(line),
      });
      return lines;
    };
    expect([warningsAt(0o600), warningsAt(0o400)]).toEqual([[], []]);
    const problem = "mode 0640: others on this machine may read it or write to it";
    const fields = { file, problem, do: `chmod 600 ${file}` };
    expect(warningsAt(0o640)).toEqual([["warn", "secret.exposed", fields]]);
    expect(warningsAt(0o666)).toHaveLength(1);
    rmSync(directory, { recursive: true });
  });
});
