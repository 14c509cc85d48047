import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { certificateFiles } from "../testing/certificate.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo } from "../testing/session.ts";
import { SmtpTarget } from "./target.ts";
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

  it("delivers a mail with its attachments, and reports its recipients", async () => {
    const content = Buffer.from(Array.from({ length: 2_000 }, (_, at) => at % 256));
    const [sent] = await answersTo(
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

  it("sends one mail again on the same connection, and measures a new connection separately", async () => {
    const mail = relay.send(MAIL);
    const [first, second] = await answersTo(mail, mail);
    expect(second?.value.accepted).toEqual(["ada@shop.test"]);
    expect(first?.connectMs).toBeGreaterThanOrEqual(0);
    expect(first?.loginMs).toBeGreaterThan(0);
    expect(second?.connectMs).toBe(-1);
  });

  it("continues with the next mail after one that is too large", async () => {
    const big = relay.send({ ...MAIL, text: "x".repeat(200_000) });
    const [refused, next] = await answersTo(big, relay.send(MAIL));
    expect(refused).toMatchObject({ ok: false, errorKind: "application", errorCode: "552" });
    expect(next?.error).toBeNull();
  });

  it("fails as TLS when the server does not support it", async () => {
    const secure = new SmtpTarget(`smtp://127.0.0.1:${server.port}`, { tls: true });
    const [refused] = await answersTo(secure.send(MAIL));
    expect(refused).toMatchObject({ ok: false, errorKind: "tls" });
  });

  it("matches the server's own count in a whole run", async () => {
    const before = await server.served();
    const steps = await runExample("smtp.ts", { SMTP_URL: `smtp://127.0.0.1:${server.port}` });
    expect((await server.served()) - before).toBe(steps.get("bill")?.ok);
  });
});

describe("over TLS", needs(aiosmtpdProgram !== null, absent(AIOSMTPD)), () => {
  it.each([
    ["STARTTLS", "smtp", "tls", { tls: true }],
    ["TLS from the beginning", "smtps", "smtps", {}],
  ])("%s trusts only the given authority", async (...given) => {
    const [, scheme, option, options] = given;
    const { cert, certFile, keyFile } = certificateFiles();
    const server = await startMail(`--${option}cert`, certFile, `--${option}key`, keyFile);
    onTestFinished(() => server.stop());
    const url = `${scheme}://127.0.0.1:${server.port}`;
    const [sent, refused] = await answersTo(
      new SmtpTarget(url, { ...options, ca: cert }).send(MAIL),
      new SmtpTarget(url, options).send(MAIL),
    );
    expect(sent.error).toBeNull();
    expect(refused.errorKind).toBe("tls");
    expect(await server.served()).toBe(1);
  });
});

describe("validation", () => {
  const relay = new SmtpTarget("smtp://127.0.0.1");
  it.each([
    ["no sender", () => relay.send({ ...MAIL, from: "" }), /has a sender/],
    ["no recipient", () => relay.send({ ...MAIL, to: [] }), /1 to 1000 recipients/],
    ["TLS twice", () => new SmtpTarget("smtps://127.0.0.1", { tls: true }), /from the beginning/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
