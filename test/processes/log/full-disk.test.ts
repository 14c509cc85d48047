/** A disk that is really full: a small file system in memory. Real time: the log waits for space. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { identityOf } from "../../../src/core/ledger/log/segment.ts";
import { WalError } from "../../../src/ledger/log/errors.ts";
import type { WalOptions } from "../../../src/ledger/log/types.ts";
import { Wal } from "../../../src/ledger/log/wal.ts";
import { NO_MOUNT, needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { checkEntries, entryBytes } from "./entries.ts";

const mount = mkdtempSync(join(tmpdir(), "hyperscale-wal-full-"));
const mounted =
  spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "hyperscale-wal-test", mount]).status === 0;
afterAll(() => {
  if (mounted) spawnSync("umount", [mount]);
  rmSync(mount, { recursive: true, force: true });
});

const ballast = join(mount, "ballast");

function open(name: string, more: Partial<WalOptions> = {}): Promise<Wal> {
  const { config, ...rest } = more;
  return Wal.open({
    directory: join(mount, name),
    identity: identityOf("test", "full"),
    config: { segmentBytes: 65_536, fullDiskRetryMs: 20, ...config },
    ...rest,
  });
}

describe("a full disk", needs(mounted, NO_MOUNT), () => {
  it("rejects entries, loses nothing acknowledged, and continues when space returns", async () => {
    await writeFile(ballast, Buffer.alloc(700_000));
    const events: string[] = [];
    const log = await open("reject", { onEvent: ({ event }) => events.push(event) });
    let next = 0;
    let refused: unknown = null;
    while (refused === null) {
      await log.append(64, entryBytes(next)).then(
        () => next++,
        (error: unknown) => {
          refused = error;
        },
      );
    }
    expect(refused instanceof WalError && refused.code).toBe("WAL_FULL_DISK");
    expect(events).toContain("wal.disk-full");
    expect((await checkEntries(log.directory)).entries).toBe(next);
    await rm(ballast);
    // An attempt that met the full disk may still be on its way; the one after it succeeds.
    await vi.waitFor(() => expect(events).toContain("wal.disk-has-space"), PATIENCE_MS);
    for (let i = 0; i < 50; i++) await log.append(64, entryBytes(next++));
    await log.close();
    expect((await checkEntries(log.directory)).entries).toBe(next);
    await rm(log.directory, { recursive: true });
  });

  it("makes posted entries wait, in order and without a gap", async () => {
    await writeFile(ballast, Buffer.alloc(700_000));
    let durable = 0;
    let full: () => void = () => {};
    const filled = new Promise<void>((resolve) => {
      full = resolve;
    });
    const log = await open("wait", {
      onDurable: (count) => {
        durable = count;
      },
      onEvent: ({ event }) => {
        if (event === "wal.disk-full") full();
      },
    });
    for (let i = 0; i < 5_000; i++) log.post(64, entryBytes(i));
    await filled;
    const before = durable;
    expect(before).toBeLessThan(5_000);
    await rm(ballast);
    await log.flush();
    expect(durable).toBe(5_000);
    await log.close();
    expect((await checkEntries(log.directory)).entries).toBe(5_000);
  });
});
