import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { certificateFiles } from "../testing/certificate.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo } from "../testing/session.ts";
import { FtpTarget } from "./target.ts";
import { type FtpServer, PYFTPDLIB, pyftpdlib, startFtp } from "./testing/server.ts";

describe("a server", needs(pyftpdlib !== null, absent(PYFTPDLIB)), () => {
  let server: FtpServer;
  let files: FtpTarget;
  beforeAll(async () => {
    server = await startFtp();
    files = new FtpTarget(server.url);
  });
  afterAll(() => server.stop());

  it("stores files unchanged and returns them", async () => {
    const content = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 256));
    const [made, sent, added, size, back, all] = await answersTo(
      files.mkdir("bills"),
      files.upload("bills/7.pdf", content),
      files.append("bills/7.pdf", "end"),
      files.size("bills/7.pdf"),
      files.download("bills/7.pdf"),
      files.list("bills"),
    );
    expect(made).toMatchObject({ ok: true, protocol: "ftp", sent: 1 });
    expect(made.loginMs).toBeGreaterThan(0);
    expect(sent.connectMs).toBe(-1);
    expect(sent.bytesOut).toBeGreaterThan(100_000);
    expect(added.error).toBeNull();
    expect(size.value).toBe(100_003);
    expect(back.bytesIn).toBeGreaterThan(100_000);
    expect(back.value.equals(Buffer.concat([content, Buffer.from("end")]))).toBe(true);
    expect(server.file("bills/7.pdf").equals(back.value)).toBe(true);
    expect(all.value).toEqual([{ name: "7.pdf", bytes: 100_003, isFolder: false }]);
  });

  it("renames and removes files, and continues after a refused command", async () => {
    const [, renamed, missing, removed, gone] = await answersTo(
      files.upload("a", ""),
      files.rename("a", "b"),
      files.download("a"),
      files.remove("b"),
      files.size("b"),
    );
    expect(renamed.error).toBeNull();
    expect(missing).toMatchObject({ errorKind: "application", errorCode: "550" });
    expect(removed).toMatchObject({ ok: true, connectMs: -1 });
    expect(gone).toMatchObject({ errorKind: "application", errorCode: "550" });
  });

  it("names a failed login and an unsupported command", async () => {
    const [stranger, plain] = await answersTo(
      new FtpTarget(server.url, { password: "wrong" }).ping(),
      new FtpTarget(server.url, { tls: true }).ping(),
    );
    expect(stranger).toMatchObject({ errorKind: "application", errorCode: "530" });
    expect(plain).toMatchObject({ errorKind: "application", errorCode: "500" });
  });

  it("speaks TLS and trusts only the given authority", async () => {
    const { cert, certFile, keyFile } = certificateFiles();
    const secure = await startFtp(certFile, keyFile);
    onTestFinished(() => secure.stop());
    // No file transfer: this server often resets its data connection, on a quiet machine always.
    const [trusting, doubting] = await answersTo(
      new FtpTarget(secure.url, { tls: true, ca: cert }).size("hello"),
      new FtpTarget(secure.url, { tls: true }).ping(),
    );
    expect(trusting.error).toBeNull();
    expect(trusting.value).toBe(5);
    expect(doubting.errorKind).toBe("tls");
  });

  it("matches the server's own count in a whole run", async () => {
    const [stored, retrieved] = [server.count("STOR"), server.count("RETR")];
    const steps = await runExample("ftp.ts", { FTP_URL: server.url });
    expect(server.count("STOR") - stored).toBe(steps.get("bill")?.ok);
    expect(server.count("RETR") - retrieved).toBe(steps.get("read")?.ok);
  });
});

describe("validation", () => {
  const files = new FtpTarget("ftp://127.0.0.1");
  it.each([
    ["no path", () => files.size(""), /is not a path/],
    ["two commands", () => files.remove("a\r\nDELE b"), /is not a path/],
    ["TLS twice", () => new FtpTarget("ftps://127.0.0.1", { tls: true }), /from the beginning/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
