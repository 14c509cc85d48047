import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { isRoot, needs } from "../../test/needs.ts";
import { asUser, executorRights, findUser, rightsText } from "./executor-user.ts";

const PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:n:/:/bin/false\n";
const program = fileURLToPath(import.meta.url);
const directory = mkdtempSync(join(tmpdir(), "hyperscale-executor-user-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("the user of job code", () => {
  it("is found by name or number, and a number needs no entry", () => {
    expect(findUser("nobody", PASSWD)).toEqual({ name: "nobody", uid: 65_534, gid: 65_533 });
    expect(findUser("65534", PASSWD)).toEqual({ name: "nobody", uid: 65_534, gid: 65_533 });
    expect(findUser("4242", PASSWD)).toEqual({ name: "4242", uid: 4_242, gid: 4_242 });
    expect(findUser("ada", PASSWD)).toBeNull();
  });

  it("is this process's own when root is named, and that is reported", () => {
    const rights = executorRights({ name: "root", program });
    expect(rights.user).toBeNull();
    expect(rightsText(rights)).toBe("job code has the rights of this node: executorUser is root");
  });

  it("is rejected when it was named and does not exist, or is root by number", () => {
    expect(() => executorRights({ name: "no-such-user", program })).toThrow(
      /^executorUser no-such-user: /,
    );
    expect(() => executorRights({ name: "0", program })).toThrow(/^executorUser 0: /);
  });

  it("cannot read files, memory or variables of the node (root)", needs(isRoot, "not root"), () => {
    const secret = join(directory, "secret");
    writeFileSync(secret, "s3cret", { mode: 0o600 });
    const user = findUser("65534", "");
    const tries = [secret, `/proc/${process.pid}/environ`, `/proc/${process.pid}/mem`];
    const script = `for (const file of ${JSON.stringify(tries)}) {
        try { require("node:fs").readFileSync(file); console.log("read", file); } catch {}
      }
      console.log(process.getuid(), process.getgroups().join(), process.env.HYPERSCALE_X ?? "-")`;
    process.env["HYPERSCALE_X"] = "s3cret";
    const { stdout } = spawnSync(process.execPath, ["-e", script], {
      ...asUser(user),
      encoding: "utf8",
    });
    Reflect.deleteProperty(process.env, "HYPERSCALE_X");
    expect(stdout).toBe("65534 65534 -\n");
  });

  it(
    "is not used when it cannot read the program, unless it was named (root)",
    needs(isRoot, "not root"),
    () => {
      const closed = join(directory, "program.js");
      writeFileSync(closed, "", { mode: 0o600 });
      expect(executorRights({ name: undefined, program: closed }).why).toContain("cannot read");
      expect(() => executorRights({ name: "65534", program: closed })).toThrow("cannot read");
    },
  );
});
