import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { exposesPassword } from "./queue.ts";

const PROGRAM = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));

describe("the password of a queue's database", () => {
  it.each(["postgres://ada:secret@db/jobs", "postgres://db/jobs?user=ada&password=secret"])(
    "is exposed by an argument, and by no variable: %s",
    (database) => {
      expect(exposesPassword(database, ["start", "--database", database])).toBe(true);
      expect(exposesPassword(database, ["start", `--database=${database}`])).toBe(true);
      expect(exposesPassword(database, ["start"])).toBe(false);
    },
  );

  it.each(["postgres://ada@db:5432/jobs", "postgres://db:5432/jobs", undefined])(
    "is not exposed by %s, which has none",
    (database) => {
      expect(exposesPassword(database, ["start", "--database", `${database}`])).toBe(false);
    },
  );

  it("triggers a warning of a node that is started with it", async () => {
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-queue-database-"));
    const database = "postgres://ada:secret@127.0.0.1:1/jobs";
    const args = ["queue", "start", "--database", database, "--data-dir", directory];
    const listen = ["--listen", "127.0.0.1:0"];
    const node = spawn(process.execPath, [PROGRAM, ...args, ...listen], { stdio: "pipe" });
    const exit = once(node, "exit");
    let text = "";
    for (const stream of [node.stdout, node.stderr])
      stream.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (text.includes("database.password-exposed")) node.kill("SIGKILL");
      });
    await exit;
    rmSync(directory, { recursive: true, force: true });
    expect(text).toContain("HYPERSCALE_DATABASE_URL");
    expect(text).not.toContain("secret");
  });
});
