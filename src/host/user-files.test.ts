import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isRoot, needs } from "../../test/needs.ts";
import { asUser } from "./executor-user.ts";
import { letRead, removeFolder } from "./user-files.ts";

const user = { name: "65534", uid: 65_534, gid: 65_534 };

describe("folders shared with the user of job code", needs(isRoot, "not root"), () => {
  let place: string;
  let folder: string;
  let secret: string;

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "hyperscale-user-files-"));
    chmodSync(place, 0o711);
    folder = join(place, "shared");
    mkdirSync(folder, { mode: 0o711 });
    secret = join(place, "secret");
    writeFileSync(secret, "root's", { mode: 0o600 });
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  function ofUser(name: string): string {
    const path = join(folder, name);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chownSync(path, user.uid, user.gid);
    return path;
  }

  function shell(script: string): number | null {
    return spawnSync("sh", ["-c", script, folder], { ...asUser(user), cwd: "/" }).status;
  }

  it("are readable to the user, who owns and can change nothing in them", async () => {
    mkdirSync(join(folder, "a", "b"), { recursive: true, mode: 0o700 });
    for (const name of ["w.mjs", "a/one", "a/b/two"])
      writeFileSync(join(folder, name), "x", { mode: 0o600 });
    await letRead(folder, user);
    const paths = ["", ...readdirSync(folder, { recursive: true }).map(String)];
    expect(paths).toHaveLength(6);
    for (const path of paths) expect(lstatSync(join(folder, path)).uid).toBe(0);
    expect(shell("cat $0/w.mjs $0/a/one $0/a/b/two && ls $0/a/b")).toBe(0);
    for (const change of ["echo y > $0/w.mjs", "mv $0/a $0/c", "ln -s /etc $0/a/b/three"])
      expect(shell(change), change).not.toBe(0);
  });

  it("are removed with what the user left in them, and links are not followed", async () => {
    const results = ofUser("results");
    expect(
      shell(`mkdir -p $0/results/a/b && touch $0/results/a/b/c && ln -s ${place} $0/results/l`),
    ).toBe(0);
    symlinkSync(secret, join(folder, "link"));
    await removeFolder(folder);
    expect(existsSync(results)).toBe(false);
    expect(existsSync(folder)).toBe(false);
    expect(readFileSync(secret, "utf8")).toBe("root's");
  });

  it("lose only what the user themselves could delete", async () => {
    const own = join(ofUser("results"), "a");
    mkdirSync(own, { mode: 0o755 });
    writeFileSync(join(own, "kept"), "root's");
    await expect(removeFolder(folder)).rejects.toThrow(/ENOTEMPTY.*results/);
    expect(readFileSync(join(own, "kept"), "utf8")).toBe("root's");
  });

  it("are left alone when the user has put a folder or a link in their place", async () => {
    const theirs = ofUser("theirs");
    writeFileSync(join(theirs, "file"), "");
    await removeFolder(theirs);
    const link = join(place, "link");
    symlinkSync(folder, link);
    await removeFolder(link);
    expect(existsSync(join(theirs, "file"))).toBe(true);
  });
});
