import { expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "../dns/testing/server.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";

it(
  "matches the server's own count in a whole run",
  needs(dnsmasqProgram !== null, absent(DNSMASQ)),
  async () => {
    const server = await startDnsmasq();
    onTestFinished(() => server.stop());
    const before = await server.served();
    const steps = await runExample("udp.ts", { UDP_URL: `udp://127.0.0.1:${server.port}` });
    expect((await server.served()) - before).toBe(steps.get("ask")?.sent);
  },
);
