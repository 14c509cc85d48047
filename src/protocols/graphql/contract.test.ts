import type { IncomingMessage, ServerResponse } from "node:http";
import { buildSchema, graphql as execute } from "graphql";
import { describeContract } from "../testing/contract.ts";
import { startCounting } from "../testing/counting-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { graphql } from "./client.ts";

const schema = buildSchema("type Query { price(id: Int!): Int, broken: Int }");
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const answer = (body: string): Buffer =>
  Buffer.from(`${HEAD}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);

/** The reference implementation on Node's own server. */
function executed(request: IncomingMessage, response: ServerResponse): void {
  let body = "";
  request.on("data", (part) => {
    body += String(part);
  });
  request.on("end", async () => {
    const { query, variables } = JSON.parse(body) as { query: string; variables?: object };
    const rootValue = {
      price: ({ id }: { readonly id: number }) => id * 100,
      broken: () => Promise.reject(new Error("out of stock")),
    };
    const given = { schema, source: query, rootValue, variableValues: { ...variables } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(await execute(given)));
  });
}

describeContract({
  name: "graphql",
  calls: (port) => ({
    success: graphql.query(`http://127.0.0.1:${port}/`, "query ($id: Int!) { price(id: $id) }", {
      variables: { id: 7 },
    }),
    // Errors inside a response have no protocol code; see graphql.test.ts.
    refused: null,
  }),
  real: { start: () => startCounting(executed), absent: "", users: 1_000 },
  hostile: {
    listen: (onCall) => listenTcp((socket) => socket.on("data", () => onCall(socket))),
    mute: null,
    resets: true,
    half: Buffer.from(`${HEAD}content-length: 20\r\n\r\n{"data":`),
    // An HTTP response that is not GraphQL keeps its connection open; see graphql.test.ts.
    rubbish: [Buffer.from("hello\r\n")],
    oversize: answer(`{"data":"${"x".repeat(70_000)}"}`),
  },
});
