import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { runner, TestSession } from "../testing/session.ts";
import { type SmtpCall, SmtpResponse, SmtpTarget } from "./target.ts";
import { AIOSMTPD, aiosmtpdProgram, type MailServer, startMail } from "./testing/server.ts";

const MAIL = { from: "shop@shop.test", to: "ada@shop.test", subject: "Grüße", text: "hello" };

describe("a server", needs(aiosmtpdProgram !== null, absent(AIOSMTPD)), () => {
  let server: MailServer;
  let relay: SmtpTarget;
  beforeAll(async () => {
    server = await startMail("-s", "100000");
    relay = new SmtpTarget(`smtp://127.0.0.1:${server.port}`);
  });
  afterAll(() => server.stop());

  async function answers<Value>(
    ...calls: readonly SmtpCall<Value>[]
  ): Promise<SmtpResponse<Value>[]> {
    const session = new TestSession();
    const all: SmtpResponse<Value>[] = [];
    for (const call of calls) {
      const { result } = await (await runner(call, session))();
      expect(result).toBeInstanceOf(SmtpResponse);
      all.push(result as SmtpResponse<Value>);
    }
    session.close();
    return all;
  }

  it("delivers a mail with its attachments, and says for whom", async () => {
    const content = Buffer.from(Array.from({ length: 2_000 }, (_, at) => at % 256));
    const [sent] = await answers(
      relay.send({
        ...MAIL,
        bcc: ["secret@shop.test"],
        html: "<p>hello</p>",
        headers: { "X-Order": "7" },
        attachments: [{ filename: "bill.pdf", content }],
      }),
    );
    expect(sent).toMatchObject({ ok: true, protocol: "smtp", sent: 1 });
    expect(sent?.value.accepted).toEqual(["ada@shop.test", "secret@shop.test"]);
    expect(sent?.bytesOut).toBeGreaterThan(2_000);
    const mail = server.mails().find((text) => text.includes("X-Order: 7")) ?? "";
    expect(mail).toContain("application/pdf");
    expect(mail.replace(/\s/g, "")).toContain(content.toString("base64"));
    expect(mail).not.toMatch(/^bcc:/im);
  });

  it("sends one mail again, on the same connection, and has a new one's time apart", async () => {
    const mail = relay.send(MAIL);
    const [first, second] = await answers(mail, mail);
    expect(second?.value.accepted).toEqual(["ada@shop.test"]);
    expect(first?.connectMs).toBeGreaterThanOrEqual(0);
    expect(first?.loginMs).toBeGreaterThan(0);
    expect(second?.connectMs).toBe(-1);
  });

  it("goes on with the next mail after one that is too large", async () => {
    const big = relay.send({ ...MAIL, text: "x".repeat(200_000) });
    const [refused, next] = await answers(big, relay.send(MAIL));
    expect(refused).toMatchObject({ ok: false, errorKind: "application", errorCode: "552" });
    expect(next?.error).toBeNull();
  });

  it("fails as TLS where the server has none", async () => {
    const secure = new SmtpTarget(`smtp://127.0.0.1:${server.port}`, { tls: true });
    const [refused] = await answers(secure.send(MAIL));
    expect(refused).toMatchObject({ ok: false, errorKind: "tls" });
  });

  it("counts what the server counts in a whole run", async () => {
    const before = await server.served();
    const steps = await runExample("smtp.ts", { SMTP_URL: `smtp://127.0.0.1:${server.port}` });
    expect((await server.served()) - before).toBe(steps.get("bill")?.ok);
  });
});

describe("over TLS", needs(aiosmtpdProgram !== null, absent(AIOSMTPD)), () => {
  it.each([
    ["STARTTLS", "smtp", "tls", { tls: true }],
    ["TLS from the beginning", "smtps", "smtps", {}],
  ])("%s believes the authority that it was given, and nobody else", async (...given) => {
    const [, scheme, option, options] = given;
    const folder = mkdtempSync(join(tmpdir(), "hyperscale-smtp-"));
    const { cert, key } = makeCertificate({ hosts: ["127.0.0.1"] });
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    const server = await startMail(`--${option}cert`, certFile, `--${option}key`, keyFile);
    const url = `${scheme}://127.0.0.1:${server.port}`;
    const session = new TestSession();
    const trusting = new SmtpTarget(url, { ...options, ca: cert }).send(MAIL);
    expect((await (await runner(trusting, session))()).result?.error).toBeNull();
    const doubting = new SmtpTarget(url, options).send(MAIL);
    expect((await (await runner(doubting, session))()).record.errorKind).toBe("tls");
    expect(await server.served()).toBe(1);
    session.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });
});

describe("a mistake", () => {
  const relay = new SmtpTarget("smtp://127.0.0.1");
  it.each([
    ["no sender", () => relay.send({ ...MAIL, from: "" }), /has a sender/],
    ["no recipient", () => relay.send({ ...MAIL, to: [] }), /1 to 1000 recipients/],
    ["TLS twice", () => new SmtpTarget("smtps://127.0.0.1", { tls: true }), /from the beginning/],
  ])("%s is told at once", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
