/** Protocols with our own implementation, beside the clients and tools that people use for them. */

import dgram from "node:dgram";
import { dirname, join } from "node:path";
import { encodeQuery } from "../../src/protocols/dns/message.ts";
import { DnsTarget } from "../../src/protocols/dns/target.ts";
import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "../../src/protocols/dns/testing/server.ts";
import { http2 } from "../../src/protocols/http2/client.ts";
import { MqttTarget } from "../../src/protocols/mqtt/target.ts";
import {
  MOSQUITTO,
  mosquittoProgram,
  startMosquitto,
} from "../../src/protocols/mqtt/testing/server.ts";
import { NatsTarget } from "../../src/protocols/nats/target.ts";
import { NATS_SERVER, natsProgram, startNats } from "../../src/protocols/nats/testing/server.ts";
import { RedisTarget } from "../../src/protocols/redis/target.ts";
import {
  REDIS_SERVER,
  redisProgram,
  startRedis,
} from "../../src/protocols/redis/testing/server.ts";
import { absent } from "../../src/protocols/testing/real-server.ts";
import { websocket } from "../../src/protocols/websocket/client.ts";
import {
  type Comparison,
  comparison,
  lanes,
  type Operation,
  ours,
  type Side,
  unless,
} from "./comparison.ts";
import { grpcPeer, grpcTarget } from "./grpc-peer.ts";
import { h2load, NO_H2LOAD, NO_NGINX, nodeHttp2, startNginx } from "./http2-peers.ts";
import { ioredis, ioredisGet, mqtt, mqttPublish, nats, natsPublish } from "./npm-peers.ts";
import { startApart } from "./server-process.ts";
import { timedProgram } from "./timed-program.ts";
import { wsEcho } from "./websocket-echo.ts";

const REDIS_CONNECTIONS = 64;

export const ownWire = [
  http2Get(1, 1.6),
  http2Get(32, 4),
  comparison({
    name: "websocket echo",
    operations: 10_000,
    absent: null,
    server: () => startApart("websocket"),
    ours: ({ port }) => ours(websocket.exchange(`ws://127.0.0.1:${port}/`, "hello")),
    peers: [
      {
        name: "ws",
        must: 0.9,
        absent: null,
        open: ({ port }) => lanes(() => wsEcho(port, "hello")),
      },
    ],
  }),
  comparison({
    name: `redis GET, ${REDIS_CONNECTIONS} connections`,
    operations: 40_000,
    absent: unless(redisProgram !== null, absent(REDIS_SERVER)),
    server: startRedis,
    ours: ({ port }) => {
      const call = new RedisTarget(`redis://127.0.0.1:${port}`).get("price");
      return ours(call, { connections: REDIS_CONNECTIONS });
    },
    peers: [
      {
        name: "redis-benchmark",
        must: 1.6,
        absent: null,
        open: ({ port }) => redisBenchmark(port),
      },
      {
        name: "ioredis",
        must: 0.5,
        absent: ioredis.absent,
        open: ({ port }) => lanes(() => ioredisGet(port, "price"), REDIS_CONNECTIONS),
      },
    ],
  }),
  mqttPublishes(0),
  mqttPublishes(1),
  natsPublishes("nats publish", 64),
  natsPublishes("nats publish with confirm", 1),
  comparison({
    name: "dns query over UDP",
    operations: 20_000,
    absent: unless(dnsmasqProgram !== null, absent(DNSMASQ)),
    server: startDnsmasq,
    ours: ({ port }) => ours(new DnsTarget(`dns://127.0.0.1:${port}`).query("fixed.test")),
    peers: [
      {
        name: "a bare dgram loop",
        must: 1.5,
        absent: null,
        open: ({ port }) => lanes(() => bareQuery(port)),
      },
    ],
  }),
  comparison({
    name: "grpc unary",
    operations: 2_000,
    absent: null,
    server: () => startApart("grpc"),
    ours: ({ port }) => ours(grpcTarget(port).unary("shop.Catalog/GetItem", { id: 7 })),
    peers: [
      {
        name: "@grpc/grpc-js",
        must: 0.4,
        absent: null,
        open: ({ port }) => lanes(() => grpcPeer(port)),
      },
    ],
  }),
];

function http2Get(streams: number, must: number): Comparison {
  return comparison({
    name: `http2 GET, ${streams} ${streams === 1 ? "stream" : "streams"} per connection`,
    operations: 20_480,
    absent: NO_NGINX,
    server: startNginx,
    ours: ({ url }) => ours(http2.get(url), { calls: streams }),
    peers: [
      { name: "h2load", must, absent: NO_H2LOAD, open: ({ url }) => h2load(url, streams) },
      {
        name: "node:http2",
        must: 0.4,
        absent: null,
        open: ({ url }) => nodeHttp2(url, streams),
      },
    ],
  });
}

function mqttPublishes(qos: 0 | 1): Comparison {
  return comparison({
    name: `mqtt publish, QoS ${qos}`,
    operations: 10_000,
    absent: unless(mosquittoProgram !== null, absent(MOSQUITTO)),
    server: startMosquitto,
    ours: ({ port }) =>
      ours(new MqttTarget(`mqtt://127.0.0.1:${port}`).publish("rooms/7", "21.5", { qos })),
    peers: [
      {
        name: "mqtt",
        must: 0.5,
        absent: mqtt.absent,
        open: ({ port }) => lanes(() => mqttPublish(port, qos)),
      },
    ],
  });
}

function natsPublishes(name: string, publishesPerFlush: number): Comparison {
  const confirm = publishesPerFlush === 1;
  return comparison({
    name,
    operations: 10_240,
    absent: unless(natsProgram !== null, absent(NATS_SERVER)),
    server: startNats,
    ours: ({ port }) =>
      ours(new NatsTarget(`nats://127.0.0.1:${port}`).publish("orders", "hello", { confirm })),
    peers: [
      {
        name: confirm ? "nats" : `nats, a flush after ${publishesPerFlush}`,
        must: 0.6,
        absent: nats.absent,
        open: ({ port }) => lanes(() => natsPublish(port, publishesPerFlush)),
      },
    ],
  });
}

/** From the server's own package: one thread, no pipelining. */
function redisBenchmark(port: number): Side {
  if (redisProgram === null) throw new Error("there is no redis-server");
  const { environment, path } = redisProgram;
  const program = { environment, path: join(dirname(path), "redis-benchmark") };
  return timedProgram(program, (operations) => [
    ...["-p", `${port}`, "-c", `${REDIS_CONNECTIONS}`, "-n", `${operations}`],
    ...["-q", "GET", "price"],
  ]);
}

async function bareQuery(port: number): Promise<Operation> {
  const query = Buffer.from(encodeQuery("fixed.test", "A", true));
  const socket = dgram.createSocket("udp4");
  await new Promise<void>((resolve) => socket.connect(port, "127.0.0.1", resolve));
  return () =>
    new Promise((resolve) => {
      socket.once("message", resolve);
      socket.send(query);
    });
}
