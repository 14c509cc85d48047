import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ExecutionContext } from "../worker/executor.ts";
import { httpExecutor } from "./http.ts";
import { HttpTargets, isPublic } from "./http-targets.ts";

describe("public addresses", () => {
  it.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])(
    "include %s",
    (address) => expect(isPublic(address)).toBe(true),
  );
  it.each([
    ...["127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255"],
    ...["192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255"],
    ...["::", "::1", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1"],
    ...["::ffff:7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "::127.0.0.1"],
  ])("exclude %s", (address) => expect(isPublic(address)).toBe(false));
});

describe("allowed targets", () => {
  const admits = (allow: readonly string[] | undefined, url: string): boolean => {
    try {
      new HttpTargets(allow === undefined ? {} : { allow }).check(new URL(url));
      return true;
    } catch {
      return false;
    }
  };

  it.each([
    [undefined, "http://8.8.8.8/", true],
    [undefined, "https://example.com/", true],
    [undefined, "http://127.0.0.1:7600/", false],
    [undefined, "http://2130706433/", false],
    [undefined, "http://[::1]/", false],
    [undefined, "http://[::ffff:169.254.169.254]/", false],
    [["127.0.0.1:8080"], "http://127.0.0.1:8080/", true],
    [["127.0.0.1:8080"], "http://127.0.0.1:7600/", false],
    [["127.0.0.1:8080"], "http://8.8.8.8/", false],
    [["127.0.0.1:8080", "public"], "http://8.8.8.8/", true],
    [["10.1.0.0/16"], "https://10.1.200.3/", true],
    [["10.1.0.0/16"], "https://10.2.0.1/", false],
    [["::1"], "http://[::1]:99/", true],
    [["[::1]:80"], "http://[::1]:99/", false],
    [["hooks.internal"], "http://HOOKS.internal/", true],
    [["hooks.internal"], "http://example.com/", false],
    [["*.example.com:443"], "https://api.example.com/", true],
    [["*.example.com:443"], "https://notexample.com/", false],
    [["*.example.com:443"], "http://api.example.com/", false],
  ])("with %j: %s is %s", (allow, url, allowed) => expect(admits(allow, url)).toBe(allowed));

  it.each(["", "two words", "http://host/", "1.2.3.4/33", "*"])("rejects %j as an entry", (entry) =>
    expect(() => new HttpTargets({ allow: [entry] })).toThrow(/is no host/),
  );
});

describe("requests of tasks", () => {
  let server: Server;
  let port: number;
  const requests: string[] = [];
  const context = {
    idempotencyKey: "key",
    signal: new AbortController().signal,
  } as ExecutionContext;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const { authorization, host } = request.headers;
      requests.push(`${request.method} ${host}${request.url} ${authorization}`);
      const [, status, to = ""] = /^\/(\d+)\/?(.*)/.exec(request.url ?? "") ?? [];
      if (request.url === "/loop") response.writeHead(307, { location: "/loop" }).end();
      else if (to !== "")
        response.writeHead(Number(status), { location: decodeURIComponent(to) }).end();
      else {
        response.writeHead(200, { "content-encoding": "gzip" });
        response.end(gzipSync("reached"));
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => new Promise<void>((resolve) => void server.close(() => resolve())));

  const to = (url: string): string => encodeURIComponent(url);

  it("reach no name that resolves to a private address", async () => {
    requests.length = 0;
    const input = { url: `http://localhost:${port}/` };
    await expect(httpExecutor()(input, context)).rejects.toThrow(
      /localhost:\d+ is not allowed: it resolves to (127\.0\.0\.1|::1), which is not listed.*--allow-http localhost/,
    );
    await expect(httpExecutor()(input, context)).rejects.toMatchObject({ retryable: false });
    expect(requests).toEqual([]);
  });

  it("are not redirected to forbidden targets", async () => {
    const own = { allow: [`localhost:${port}`] };
    const url = `http://localhost:${port}/302/${to(`http://127.0.0.1:${port}/secret`)}`;
    requests.length = 0;
    await expect(httpExecutor(own)({ url }, context)).rejects.toThrow(
      /127\.0\.0\.1:\d+ is not allowed/,
    );
    expect(requests).toHaveLength(1);
    const odd = { url: `http://localhost:${port}/302/${to("file:///etc/passwd")}` };
    await expect(httpExecutor(own)(odd, context)).rejects.toThrow(/no address of the web/);
    const loop = { url: `http://localhost:${port}/loop` };
    await expect(httpExecutor(own)(loop, context)).rejects.toThrow(/redirects more than 20 times/);
  });

  it("follow redirects, and send credentials to the original host only", async () => {
    const both = { allow: [`localhost:${port}`, `127.0.0.1:${port}`] };
    const url = `http://localhost:${port}/302/${to(`http://127.0.0.1:${port}/200`)}`;
    const headers = { Authorization: "secret" };
    requests.length = 0;
    const input = { url, method: "POST", body: { a: 1 }, headers };
    expect(await httpExecutor(both)(input, context)).toMatchObject({
      status: 200,
      body: "reached",
    });
    expect(requests).toEqual([
      expect.stringMatching(/^POST localhost:.* secret$/),
      `GET 127.0.0.1:${port}/200 undefined`,
    ]);
  });
});
