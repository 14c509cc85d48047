import http from "node:http";
import nodeHttp2 from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { answerGraphql } from "../../demo/graphql.ts";
import { HttpResponse } from "../http/response.ts";
import { runner, TestSession } from "../testing/session.ts";
import { GraphqlClient, graphql } from "./client.ts";
import { GraphqlResponse } from "./response.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

const USER = "query User($id: ID!) { user(id: $id) { id name } }";
const users = (id: number): { id: number; name: string } | undefined =>
  id === 1 ? { id: 1, name: "Ada" } : undefined;

interface Served {
  readonly url: string;
  readonly requests: { method: string; url: string; body: string; accept: string }[];
  readonly connections: () => number;
}

async function serve(answer?: (response: http.ServerResponse) => void): Promise<Served> {
  const requests: Served["requests"] = [];
  let connections = 0;
  const server = http.createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const body = Buffer.concat(pieces).toString();
      requests.push({ method, url, body, accept: headers.accept ?? "" });
      if (answer !== undefined) answer(response);
      else response.end(JSON.stringify(answerGraphql(inputOf(body, url), users)));
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  return { url, requests, connections: () => connections };
}

function inputOf(body: string, url: string): unknown {
  if (body !== "") return JSON.parse(body);
  const { searchParams } = new URL(url, "http://x");
  return {
    query: searchParams.get("query"),
    variables: JSON.parse(searchParams.get("variables") ?? "{}"),
  };
}

function session(settings: ConstructorParameters<typeof TestSession>[0] = {}): TestSession {
  const made = new TestSession(settings);
  closers.push(() => made.close());
  return made;
}

const client = (settings?: ConstructorParameters<typeof TestSession>[0]): GraphqlClient =>
  new GraphqlClient(session(settings));

describe("a query", () => {
  it("returns its data", async () => {
    const { url, requests } = await serve();
    const response = await client().query<{ user: { name: string } }>(url, USER, {
      variables: { id: 1 },
    });
    expect(response).toBeInstanceOf(GraphqlResponse);
    expect(response).toBeInstanceOf(HttpResponse);
    expect(response).toMatchObject({ ok: true, status: 200, protocol: "graphql", errors: [] });
    expect(response.data?.user.name).toBe("Ada");
    expect(response.json()).toEqual({ data: response.data });
    expect(response.header("content-length")).toBe(String(response.bytes().length));
    expect(requests).toEqual([
      {
        method: "POST",
        url: "/graphql",
        body: JSON.stringify({ query: USER, variables: { id: 1 } }),
        accept: expect.stringContaining("application/graphql-response+json"),
      },
    ]);
  });

  it("uses GET when configured", async () => {
    const { url, requests } = await serve();
    const options = { variables: { id: 1 }, operationName: "User", method: "GET" } as const;
    expect((await client().query(url, USER, options)).ok).toBe(true);
    expect(requests[0]).toMatchObject({ method: "GET", body: "" });
    expect(requests[0]?.url).toContain("operationName=User");
  });

  it("uses HTTP/2 when configured", async () => {
    const server = nodeHttp2.createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        const input: unknown = JSON.parse(Buffer.concat(pieces).toString());
        response.end(JSON.stringify(answerGraphql(input, users)));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const response = await client().query(url, USER, { variables: { id: 1 }, over: "http2" });
    expect(response.data).toEqual({ user: { id: "1", name: "Ada" } });
  });

  it("keeps user headers, including Accept", async () => {
    const { url, requests } = await serve();
    const options = { variables: { id: 1 }, headers: { Accept: "application/json" } };
    await client().query(url, USER, options);
    expect(requests[0]?.accept).toBe("application/json");
  });
});

describe("failures", () => {
  it("errors in the response: application, with partial data", async () => {
    const { url } = await serve();
    const response = await client().query(url, USER, { variables: { id: 7 } });
    expect(response).toMatchObject({ ok: false, errorKind: "application", status: 200 });
    expect(response.sent).toBe(1);
    expect(response.error).toBe("GraphQL error: no user 7");
    expect(response.errors).toEqual([{ message: "no user 7", path: ["user"] }]);
    expect(response.data).toEqual({ user: null });
  });

  it("errors in a response with an error status: status, with the message", async () => {
    const { url } = await serve((response) => {
      response.statusCode = 400;
      response.end('{"errors":[{"message":"bad"},{"message":"worse"}]}');
    });
    const response = await client().query(url, "{ a }");
    expect(response).toMatchObject({ errorKind: "status", status: 400, data: null });
    expect(response.error).toMatch(/status 400: bad \(and 1 more\)/);
  });

  it.each([
    ["<html>", /not JSON/],
    ["[]", /neither "data" nor "errors"/],
    ['{"errors":"x"}', /not a list/],
    ["", /not JSON/],
  ])("the response %j: protocol", async (body, problem) => {
    const { url } = await serve((response) => response.end(body));
    const response = await client().query(url, "{ a }");
    expect(response.errorKind).toBe("protocol");
    expect(response.error).toMatch(problem);
  });

  it("an error status without GraphQL content: status", async () => {
    const { url } = await serve((response) => {
      response.statusCode = 502;
      response.end("<html>");
    });
    expect(await client().query(url, "{ a }")).toMatchObject({ errorKind: "status", status: 502 });
  });

  it("a body too long to be kept: protocol, since it cannot be checked", async () => {
    const { url } = await serve((response) => response.end(`{"data":"${"x".repeat(500)}"}`));
    const response = await client({ bodyBytesMax: 100 }).query(url, "{ a }");
    expect(response.errorKind).toBe("protocol");
  });

  it("no response in time: timeout", async () => {
    const { url } = await serve(() => undefined);
    const response = await client().query(url, "{ a }", { timeout: "60ms" });
    expect(response).toMatchObject({ errorKind: "timeout", data: null, errors: [] });
  });

  it("nothing listens: refused", async () => {
    expect((await client().query("http://127.0.0.1:1/", "{ a }")).errorKind).toBe("refused");
  });
});

describe("a prepared request", () => {
  it("has the same outcome whether or not the response is read", async () => {
    const { url, connections, requests } = await serve();
    const user = session();
    for (const keep of [true, false]) {
      const good = await runner(graphql.query(url, USER, { variables: { id: 1 } }), user, keep);
      const bad = await runner(graphql.query(url, USER, { variables: { id: 7 } }), user, keep);
      for (let i = 0; i < 3; i++) {
        expect((await good()).record.errorKind).toBeNull();
        const { record, result } = await bad();
        expect(record.errorKind).toBe("application");
        expect(result instanceof GraphqlResponse).toBe(keep);
      }
    }
    expect(connections()).toBe(1);
    expect(new Set(requests.map(({ body }) => body)).size).toBe(2);
  });

  it("reports nothing once its virtual user has stopped", async () => {
    const { url } = await serve(() => undefined);
    const user = session();
    const run = await runner(graphql.query(url, "{ a }", { timeout: 1_000 }), user);
    let reported = false;
    void run().then(() => {
      reported = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    user.close();
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(reported).toBe(false);
  });
});

describe("reports mistakes when the request is made", () => {
  const url = "http://127.0.0.1:1/";
  it.each([
    [() => graphql.query(url, "{ a"), /line 1, column 4: expected a name, found the end/],
    [() => graphql.query(url, "mutation { a }"), /use graphql.mutation/],
    [() => graphql.mutation(url, "{ a }"), /use graphql.query/],
    [() => graphql.query(url, "subscription { a }"), /WebSocket/],
    [() => graphql.query(url, "query A { a } query B { b }"), /several operations \(A, B\)/],
    [() => graphql.query(url, "query A { a }", { operationName: "B" }), /no "B", only A/],
    [() => graphql.query(url, USER), /"\$id" is required/],
    [() => graphql.query(url, USER, { variables: { id: null } }), /"\$id" is required/],
    [() => graphql.mutation(url, "mutation { a }", { method: "GET" }), /cannot be sent with GET/],
    [() => graphql.query("api.example", "{ a }"), /has no scheme/],
  ])("%s", (make, problem) => {
    expect(make).toThrow(problem);
  });

  it("runs the operation named by operationName", () => {
    const document = "query A { a } mutation B { b }";
    expect(graphql.mutation(url, document, { operationName: "B" }).protocol).toBe("graphql");
  });
});
