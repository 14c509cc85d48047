/** Tests specific to DNS: records, response codes, both transports. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import type { CountingServer } from "../testing/contract.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { runner, TestSession } from "../testing/session.ts";
import { type DnsCall, type DnsResponse, dns } from "./index.ts";
import { decodeReply, encodeQuery } from "./message.ts";
import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "./testing/server.ts";

async function perform(call: DnsCall): Promise<DnsResponse> {
  const session = new TestSession();
  const { result } = await (await runner(call, session))();
  session.close();
  return result as DnsResponse;
}

it("rejects invalid queries before the run", () => {
  const names = dns.target("dns://127.0.0.1");
  expect(() => names.query("a..b")).toThrow("not part of a name");
  expect(() => names.query("a".repeat(64))).toThrow("not part of a name");
  expect(() => names.query("a", "QUUX")).toThrow("not a type");
});

it("survives any byte at any position, and any length", () => {
  const bytes = encodeQuery("fixed.test", "A", true);
  bytes[2] = 0x81;
  bytes[7] = 2;
  const whole = Buffer.concat([
    bytes,
    Buffer.of(0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 1, 2, 3),
    Buffer.of(0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 9, 0, 4, 3, 97, 98, 99),
  ]);
  expect(decodeReply(whole)?.answers.map(({ data }) => data)).toEqual(["10.1.2.3", ["abc"]]);
  for (let at = 0; at < whole.length; at++) {
    expect(decodeReply(whole.subarray(0, at))).toBeNull();
    for (const byte of [0, 1, 63, 64, 192, 255]) {
      const broken = Buffer.from(whole);
      broken[at] = byte;
      expect(() => decodeReply(broken)).not.toThrow();
    }
  }
});

describe("a server", needs(dnsmasqProgram !== null, absent(DNSMASQ)), () => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startDnsmasq();
  });
  afterAll(() => server.stop());

  it.each(["dns", "dns+tcp"])("answers %s with records and codes", async (scheme) => {
    const names = dns.target(`${scheme}://127.0.0.1:${server.port}`);
    const data = async (name: string, type?: string): Promise<unknown[]> =>
      (await perform(names.query(name, type))).value.answers.map((record) => record.data);
    expect(await data("fixed.test")).toEqual(["10.1.2.3"]);
    expect(await data("fixed.test.", "AAAA")).toEqual(["fd00:0:0:0:0:0:0:1"]);
    expect(await data("text.test", "TXT")).toEqual([["hello", "world"]]);
    expect(await data("mail.test", "MX")).toEqual([{ preference: 10, exchange: "mx.mail.test" }]);
    expect(await data("_x._tcp.test", "SRV")).toEqual([
      { priority: 1, weight: 2, port: 99, target: "host.test" },
    ]);
    const missing = await perform(names.query("missing.test"));
    expect(missing).toMatchObject({ errorKind: "application", errorCode: "NXDOMAIN", status: 3 });
  });

  it("matches the server's own count in a whole run of the example", async () => {
    const before = await server.served();
    const steps = await runExample("dns.ts", { DNS_URL: `dns://127.0.0.1:${server.port}` });
    expect((await server.served()) - before).toBe(steps.get("look up")?.sent);
  });
});
