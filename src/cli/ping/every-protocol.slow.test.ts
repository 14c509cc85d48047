/** `ping` on the address of every protocol, against its server as `npm run test:protocols` starts it. */

import { describe, expect, it, onTestFinished } from "vitest";
import { chromiumPath, NO_BROWSER, needs } from "../../../test/needs.ts";
import { startSite } from "../../protocols/browser/testing/site.ts";
import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "../../protocols/dns/testing/server.ts";
import { PYFTPDLIB, pyftpdlib, startFtp } from "../../protocols/ftp/testing/server.ts";
import { startShop } from "../../protocols/grpc/testing/server.ts";
import { KCAT, kcatProgram, startKafka } from "../../protocols/kafka/testing/server.ts";
import {
  MEMCACHED_SERVER,
  memcachedProgram,
  startMemcached,
} from "../../protocols/memcached/testing/server.ts";
import { startMongodb } from "../../protocols/mongodb/testing/server.ts";
import {
  MOSQUITTO,
  mosquittoProgram,
  startMosquitto,
} from "../../protocols/mqtt/testing/server.ts";
import { MARIADB, mariadbProgram, startMysql } from "../../protocols/mysql/testing/server.ts";
import { NATS_SERVER, natsProgram, startNats } from "../../protocols/nats/testing/server.ts";
import {
  RABBITMQ_SERVER,
  rabbitmqProgram,
  startRabbitmq,
} from "../../protocols/rabbitmq/testing/server.ts";
import { REDIS_SERVER, redisProgram, startRedis } from "../../protocols/redis/testing/server.ts";
import { AIOSMTPD, aiosmtpdProgram, startMail } from "../../protocols/smtp/testing/server.ts";
import { ASYNCSSH, asyncssh, startSsh } from "../../protocols/ssh/testing/server.ts";
import { absent, freePort, type ServerPackage } from "../../protocols/testing/real-server.ts";
import { type ProtocolProbe, probeProtocol, protocolOf, warmUpProtocol } from "./protocols.ts";

interface Started {
  readonly port: number;
  readonly url?: string;
  stop(): Promise<void>;
}

interface Pinged {
  readonly scheme: string;
  /** Null where the program is absent. */
  readonly start: (() => Promise<Started>) | null;
  readonly absent: string;
  /** Expected output for people. */
  readonly answer: RegExp;
}

function row(
  scheme: string,
  [program, wanted]: readonly [unknown, ServerPackage],
  start: () => Promise<Started>,
  answer: RegExp,
): Pinged {
  return { scheme, start: program === null ? null : start, absent: absent(wanted), answer };
}

const ANSWERS: readonly Pinged[] = [
  row("dns", [dnsmasqProgram, DNSMASQ], startDnsmasq, /REFUSED/),
  row("dns+tcp", [dnsmasqProgram, DNSMASQ], startDnsmasq, /REFUSED/),
  row("ftp", [pyftpdlib, PYFTPDLIB], startFtp, /^answers$/),
  row("kafka", [kcatProgram, KCAT], startKafka, /^1 broker$/),
  row("memcached", [memcachedProgram, MEMCACHED_SERVER], startMemcached, /^VERSION /),
  row("mqtt", [mosquittoProgram, MOSQUITTO], startMosquitto, /^PINGRESP$/),
  row("mysql", [mariadbProgram, MARIADB], startMysql, /^answers$/),
  row("nats", [natsProgram, NATS_SERVER], startNats, /^PONG$/),
  row("amqp", [rabbitmqProgram, RABBITMQ_SERVER], startRabbitmq, /^answers$/),
  row("redis", [redisProgram, REDIS_SERVER], startRedis, /^PONG$/),
  row("smtp", [aiosmtpdProgram, AIOSMTPD], startMail, /^answers$/),
  row("ssh", [asyncssh, ASYNCSSH], startSsh, /^answers$/),
  // Without a health service: an answer that says so counts.
  { scheme: "grpc", start: () => startShop(), absent: "", answer: /UNIMPLEMENTED/ },
  { scheme: "mongodb", start: () => startMongodb(), absent: "", answer: /^answers$/ },
  {
    scheme: "browser+http",
    start: chromiumPath === undefined ? null : () => startSite(),
    absent: NO_BROWSER,
    // A busy browser may not have reported its largest paint by then, and may request an icon, too.
    answer: /^http:\S+: loaded in \d+ ms, (LCP \d+ ms|nothing painted), [12] requests?$/,
  },
];

async function probing(address: string): Promise<ProtocolProbe> {
  const url = new URL(address);
  const protocol = await protocolOf(url.protocol.slice(0, -1));
  if (protocol === undefined) throw new Error(`nobody has ${address}`);
  await warmUpProtocol(protocol, url);
  return { protocol, url, timeoutMs: 60_000, insecure: false };
}

describe.each(ANSWERS)("$scheme", ({ answer, scheme, start, absent: why }) => {
  it("answers, and its phases add up to the total", needs(start !== null, why), async () => {
    const server = await start?.();
    if (server === undefined) return;
    onTestFinished(() => server.stop());
    const own = server.url ?? `${scheme}://127.0.0.1:${server.port}`;
    const outcome = await probeProtocol(await probing(own.replace(/^http/, "browser+http")));
    expect(outcome).toMatchObject({ ok: true, address: "127.0.0.1", port: server.port });
    if (!outcome.ok) return;
    expect(outcome.statusText).toMatch(answer);
    const { body, connect, firstByte, login = 0 } = outcome.phases;
    expect(connect + login + firstByte + body).toBeCloseTo(outcome.totalMs, 6);
  });

  it("is refused where nothing listens, whatever has to be loaded for it", async () => {
    const outcome = await probeProtocol(
      await probing(`${scheme}://shop:secret@127.0.0.1:${await freePort()}`),
    );
    expect(outcome).toMatchObject({ ok: false, kind: "refused", phase: "connect" });
    if (!outcome.ok) expect(outcome.message).toMatch(/^nothing listens on 127\.0\.0\.1:\d+$/);
  });
});
