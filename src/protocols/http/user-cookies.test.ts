import http from "node:http";
import nodeHttp2 from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { afterEach, expect, it } from "vitest";
import { HttpClient } from "../http1/index.ts";
import { Http2Client } from "../http2/index.ts";
import { TestSession } from "../testing/session.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

async function listen(server: Server): Promise<string> {
  closers.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** Each server sets its own cookie and answers with the cookies it received. */
async function serveBoth(): Promise<{ readonly http1: string; readonly http2: string }> {
  const first = http.createServer((request, response) => {
    response.setHeader("set-cookie", "one=1; Path=/");
    response.end(request.headers.cookie ?? "none");
  });
  const second = nodeHttp2.createServer();
  second.on("stream", (stream, headers) => {
    stream.respond({ ":status": 200, "set-cookie": ["two=2; Path=/"] });
    stream.end(headers.cookie ?? "none");
  });
  return { http1: await listen(first), http2: await listen(second) };
}

function user(settings: ConstructorParameters<typeof TestSession>[0] = {}): TestSession {
  const session = new TestSession(settings);
  closers.push(() => session.close());
  return session;
}

it("a virtual user shares one jar between HTTP/1.1 and HTTP/2", async () => {
  const urls = await serveBoth();
  const session = user();
  const [over1, over2] = [new HttpClient(session), new Http2Client(session)];
  expect((await over1.get(urls.http1)).text()).toBe("none");
  expect((await over2.get(urls.http2)).text()).toBe("one=1");
  expect((await over1.get(urls.http1)).text()).toBe("one=1; two=2");
  expect((await new Http2Client(user()).get(urls.http2)).text()).toBe("none");
});

it("a new iteration clears the jar for both when configured", async () => {
  const urls = await serveBoth();
  const session = user({ cookies: "iteration" });
  await new HttpClient(session).get(urls.http1);
  session.reset();
  expect((await new Http2Client(session).get(urls.http2)).text()).toBe("none");
  session.reset();
  expect((await new HttpClient(session).get(urls.http1)).text()).toBe("none");
});
