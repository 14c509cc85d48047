import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo, runner, TestSession } from "../testing/session.ts";
import { SshTarget } from "./target.ts";
import { ASYNCSSH, asyncssh, type SshServer, startSsh } from "./testing/server.ts";

describe("a server", needs(asyncssh !== null, absent(ASYNCSSH)), () => {
  let server: SshServer;
  let host: SshTarget;
  beforeAll(async () => {
    server = await startSsh();
    host = new SshTarget(server.url);
  });
  afterAll(() => server.stop());

  it("executes commands with their input, and reports how they ended", async () => {
    const [said, read, failed, allowed] = await answersTo(
      host.exec("echo hello"),
      host.exec("cat", { input: "from here" }),
      host.exec("fail 3"),
      host.exec("fail 3", { codes: [0, 3] }),
    );
    expect(said).toMatchObject({ ok: true, protocol: "ssh", sent: 1 });
    expect(said.value.stdout.toString()).toBe("hello");
    expect(said.loginMs).toBeGreaterThan(0);
    expect(read.connectMs).toBe(-1);
    expect(read.bytesIn).toBeGreaterThan(20);
    expect(read.value.stdout.toString()).toBe("from here");
    expect(failed).toMatchObject({ errorKind: "application", errorCode: "EXIT_3" });
    expect(failed.error).toContain("it failed");
    expect(allowed.value).toMatchObject({ code: 3 });
    expect(allowed.value.stderr.toString()).toContain("really");
  });

  it("stores files unchanged and returns them", async () => {
    const content = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 256));
    const [made, , back, all, gone, missing] = await answersTo(
      host.mkdir("bills"),
      host.put("bills/7.pdf", content),
      host.get("bills/7.pdf"),
      host.list("bills"),
      host.remove("bills/7.pdf"),
      host.get("bills/7.pdf"),
    );
    expect(made.error).toBeNull();
    expect(back.value.equals(content)).toBe(true);
    const [entry] = all.value.filter(({ name }) => name === "7.pdf");
    expect(entry).toEqual({ name: "7.pdf", bytes: 200_000, isFolder: false });
    expect(gone).toMatchObject({ ok: true, connectMs: -1 });
    expect(missing).toMatchObject({ errorKind: "application", errorCode: "NO_SUCH_FILE" });
  });

  it("accepts the key, and trusts the server with the given fingerprint", async () => {
    const { fingerprint, port, privateKey } = server;
    const url = `ssh://shop@127.0.0.1:${port}`;
    const other = `SHA256:${"A".repeat(43)}`;
    const [keyed, stranger, doubting] = await answersTo(
      new SshTarget(url, { privateKey, fingerprint }).exec("echo hello"),
      new SshTarget(url, { password: "wrong" }).ping(),
      new SshTarget(server.url, { fingerprint: other }).ping(),
    );
    expect(keyed.error).toBeNull();
    expect(stranger).toMatchObject({ ok: false, errorCode: "AUTHENTICATION_FAILED" });
    expect(doubting.errorKind).toBe("protocol");
  });

  it("abandons a command that takes too long, and continues on another connection", async () => {
    const session = new TestSession({ timeoutMs: 2_000 });
    const slow = await runner(host.exec("wait"), session);
    expect((await slow()).record.errorKind).toBe("timeout");
    session.close();
    const [next] = await answersTo(host.exec("echo hello"));
    expect(next.error).toBeNull();
  });

  it("matches the server's own count in a whole run", async () => {
    const steps = await runExample("ssh.ts", { SSH_URL: server.url });
    expect(server.count("echo ordered")).toBe(steps.get("order")?.ok);
    expect(server.file("hyperscale-1.txt").toString()).toMatch(/^bill \d+$/);
  });
});

describe("validation", () => {
  const host = new SshTarget("ssh://shop@127.0.0.1");
  it.each([
    ["no user", () => new SshTarget("ssh://127.0.0.1"), /names no user/],
    ["no command", () => host.exec(" "), /a command is a text/],
    ["no path", () => host.get(""), /is not a path/],
    ["no fingerprint", () => new SshTarget("ssh://a@b", { fingerprint: "x" }), /fingerprint is/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
