import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeCertificate } from "../../demo/certificate.ts";
import { type DemoTarget, startDemoTarget } from "../../demo/server.ts";
import { type HostileTarget, startHostileTarget } from "../../protocols/testing/hostile-target.ts";
import { type PingOutcome, type ProbeOptions, probe } from "./probe.ts";

let target: DemoTarget;
let secure: DemoTarget;
let hostile: HostileTarget;
beforeAll(async () => {
  target = await startDemoTarget({ port: 0 });
  secure = await startDemoTarget({ port: 0, tls: makeCertificate() });
  hostile = await startHostileTarget();
});
afterAll(() => Promise.all([target.close(), secure.close(), hostile.close()]));

function ping(url: string, options: Partial<ProbeOptions> = {}): Promise<PingOutcome> {
  return probe({
    url: new URL(url),
    method: "GET",
    headers: [],
    body: null,
    timeoutMs: 60_000,
    insecure: false,
    ...options,
  });
}

describe("an answer", () => {
  it("has its status, size and address, and phases that add up to the total", async () => {
    const outcome = await ping(`${target.url.replace("127.0.0.1", "localhost")}/bytes/70000`);
    expect(outcome).toMatchObject({
      ok: true,
      status: 200,
      statusText: "OK",
      protocol: "HTTP/1.1",
      bodyBytes: 70_000,
      port: target.port,
      address: "127.0.0.1",
      tls: null,
    });
    if (!outcome.ok) return;
    const { dns, connect, tls, firstByte, body } = outcome.phases;
    expect(tls).toBeNull();
    expect((dns ?? 0) + connect + firstByte + body).toBeCloseTo(outcome.totalMs, 6);
    expect(outcome.headBytes).toBeGreaterThan(50);
  });

  it("of an address has no DNS phase", async () => {
    const outcome = await ping(target.url);
    expect(outcome.ok && outcome.phases.dns).toBeNull();
  });

  it("counts a wait of the server as first byte, a slow body as body", async () => {
    const slow = await ping(`${target.url}/slow?ms=60`);
    expect(slow.ok && slow.phases.firstByte).toBeGreaterThan(55);
    const drip = await ping(`${target.url}/drip?ms=1000`);
    expect(drip.ok && drip.phases.body).toBeGreaterThan(200);
  });

  it("with an error status is an answer too", async () => {
    expect(await ping(`${target.url}/fail?status=503`)).toMatchObject({ ok: true, status: 503 });
  });

  it.each(["HEAD", "OPTIONS"])("to %s ends without a body", async (method) => {
    const outcome = await ping(`${target.url}/redirect/1`, { method });
    expect(outcome).toMatchObject({ ok: true, status: 302, bodyBytes: 0 });
  });

  it("uses the given method, headers, credentials and body", async () => {
    const seen = new Promise<string>((resolve, reject) => {
      const server = startCapture(resolve);
      server
        .then(({ port }) =>
          ping(`http://ada:p%40ss@127.0.0.1:${port}/a?b=1`, {
            method: "PUT",
            headers: [
              ["x-a", "1"],
              ["x-a", "2"],
              ["user-agent", "me"],
            ],
            body: Buffer.from("hi"),
          }),
        )
        .catch(reject);
    });
    const request = await seen;
    expect(request).toContain("PUT /a?b=1 HTTP/1.1\r\n");
    expect(request).toContain("x-a: 1\r\nx-a: 2\r\n");
    expect(request.match(/user-agent: .*/gi)).toEqual(["user-agent: me"]);
    expect(request).toContain(`uthorization: Basic ${btoa("ada:p@ss")}\r\n`);
    expect(request).toMatch(/content-length: 2\r\n.*\r\n\r\nhi$/s);
  });
});

async function startCapture(onRequest: (text: string) => void): Promise<{ port: number }> {
  const { createServer } = await import("node:net");
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      let text = "";
      socket.on("data", (data) => {
        text += data;
        if (!text.endsWith("hi")) return;
        onRequest(text);
        socket.end("HTTP/1.1 204 No Content\r\n\r\n");
        server.close();
      });
    });
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve({ port: typeof address === "object" && address !== null ? address.port : 0 });
    });
  });
}

describe("TLS", () => {
  it("of an unknown authority is a failure that names --insecure", async () => {
    expect(await ping(secure.url)).toMatchObject({
      ok: false,
      kind: "tls",
      phase: "tls",
      code: "DEPTH_ZERO_SELF_SIGNED_CERT",
      hint: expect.stringContaining("--insecure"),
    });
  });

  it("is described, with what is wrong with it, when trust is waived", async () => {
    const url = secure.url.replace("127.0.0.1", "localhost");
    const outcome = await ping(url, { insecure: true });
    expect(outcome).toMatchObject({ ok: true, status: 200 });
    expect(outcome.ok && outcome.tls).toMatchObject({
      version: "TLSv1.3",
      cipher: expect.stringContaining("TLS_"),
      subject: "localhost",
      distrust: "DEPTH_ZERO_SELF_SIGNED_CERT",
      expiresInDays: expect.any(Number),
    });
    expect(outcome.ok && outcome.phases.tls).toBeGreaterThan(0);
  });

  it("that has expired is named so", async () => {
    const day = 86_400_000;
    const tls = makeCertificate({
      validFrom: new Date(Date.now() - 3 * day),
      validTo: new Date(Date.now() - 2 * day),
    });
    const old = await startDemoTarget({ port: 0, tls });
    const outcome = await ping(old.url, { insecure: true });
    expect(outcome.ok && outcome.tls?.expiresInDays).toBeLessThan(0);
    await old.close();
  });

  it("to a plain HTTP port says to use http://", async () => {
    expect(await ping(target.url.replace("http:", "https:"))).toMatchObject({
      kind: "tls",
      message: expect.stringContaining("does not speak TLS"),
      hint: expect.stringContaining("http://"),
    });
  });

  it("port addressed by plain HTTP is a reset that mentions https://", async () => {
    expect(await ping(secure.url.replace("https:", "http:"))).toMatchObject({
      kind: "reset",
      hint: expect.stringContaining("https://"),
    });
  });
});

describe("a failure", () => {
  it("is dns for a name that does not exist", async () => {
    // .invalid is reserved for this (RFC 6761); without a network the look-up itself fails.
    expect(await ping("http://no-such-host.invalid/")).toMatchObject({ kind: "dns", phase: "dns" });
  });

  it("is refused where nothing listens", async () => {
    const gone = await startDemoTarget({ port: 0 });
    await gone.close();
    expect(await ping(gone.url)).toMatchObject({ kind: "refused", phase: "connect" });
  });

  it.each([
    ["hang", "first byte"],
    ["hang-after-head", "body"],
    ["infinite-body", "body"],
    ["body-drip", "body"],
    ["header-drip", "first byte"],
  ])("is a timeout at %s, with the phase %s", async (behaviour, phase) => {
    const outcome = await ping(`${hostile.url}/${behaviour}`, { timeoutMs: 1_000 });
    expect(outcome).toMatchObject({ kind: "timeout", phase });
  });

  it.each([
    ["garbage", "protocol"],
    ["infinite-headers", "protocol"],
    ["two-lengths", "protocol"],
    ["bad-chunk", "protocol"],
    ["close", "reset"],
    ["reset", "reset"],
    ["half-head", "reset"],
    ["half-body", "reset"],
    ["reset-mid-body", "reset"],
  ])("at %s is of kind %s", async (behaviour, kind) => {
    expect(await ping(`${hostile.url}/${behaviour}`)).toMatchObject({ ok: false, kind });
  });

  it("by a server that hangs in the TLS handshake is a timeout there", async () => {
    const silent = await startHostileTarget({ onAccept: "hang" });
    const url = silent.url.replace("http:", "https:");
    expect(await ping(url, { timeoutMs: 1_000 })).toMatchObject({ kind: "timeout", phase: "tls" });
    await silent.close();
  });
});
