/** Credentials in the address of a run reach the server and nothing that is written or shown. */

import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Scratch } from "./cli.ts";

let here: Scratch;
let server: http.Server;
const seen = new Set<string | undefined>();

beforeAll(async () => {
  here = new Scratch();
  server = http.createServer((request, response) => {
    seen.add(request.headers.authorization);
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  here.remove();
});

it("are sent, and masked in the terminal and in every file", async () => {
  const { port } = server.address() as AddressInfo;
  const url = `http://ada:tops3cret@127.0.0.1:${port}/`;
  const args = ["run", url, "--vus", "1", "--iterations", "20", "--out", "out", "--ui", "ci"];
  const { code, stderr, stdout } = await here.start([...args, "--header", "x-token: tops3cret"])
    .done;
  expect(code, stderr).toBe(0);
  expect([...seen]).toEqual([`Basic ${Buffer.from("ada:tops3cret").toString("base64")}`]);
  expect(here.summary().name).toBe(`http://***@127.0.0.1:${port}/`);
  for (const text of [stdout, stderr, ...here.files().map((file) => here.read(`out/${file}`))]) {
    expect(text).not.toContain("tops3cret");
    expect(text).not.toContain(Buffer.from("ada:tops3cret").toString("base64"));
  }
});

it("are masked when the server is not there, or the address is none", async () => {
  const refused = await here.start(["run", "http://ada:tops3cret@127.0.0.1:1/", "--ui", "ci"]).done;
  const wrong = await here.start(["run", "http://ada:tops3cret@127.0.0.1:99999/"]).done;
  for (const { code, stderr, stdout } of [refused, wrong]) {
    expect(code).not.toBe(0);
    expect(`${stdout}${stderr}`).not.toContain("tops3cret");
  }
});
