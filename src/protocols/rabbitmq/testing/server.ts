/** A real RabbitMQ server, and a scripted one. */

import { readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import amqp from "amqplib";
import { makeCertificate } from "../../../demo/certificate.ts";
import type { CountingServer } from "../../testing/contract.ts";
import {
  findProgram,
  freePort,
  type ServerPackage,
  startServer,
} from "../../testing/real-server.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const RABBITMQ_SERVER: ServerPackage = {
  program: "rabbitmq-server",
  package: "rabbitmq-server",
};
export const rabbitmqProgram = findProgram(RABBITMQ_SERVER);

/** Queue of the calls that are counted. */
export const QUEUE = "served";

export interface RabbitmqServer extends CountingServer {
  readonly url: string;
  /** The same over TLS, and the authority to trust. */
  readonly secureUrl: string;
  readonly cert: string;
  /** Messages of a queue, by the server's own count. */
  count(queue: string): Promise<number>;
}

/** Starts it as its own script would, which expects Erlang where Debian installs it. */
export async function startRabbitmq(): Promise<RabbitmqServer> {
  if (rabbitmqProgram === null) throw new Error("there is no rabbitmq-server");
  const base = join(dirname(rabbitmqProgram.path), "..");
  const erlang = join(base, "lib/erlang");
  const [runtime = ""] = readdirSync(erlang).filter((name) => name.startsWith("erts-"));
  const programs = join(erlang, runtime, "bin");
  const environment = { ...rabbitmqProgram.environment, ROOTDIR: erlang, BINDIR: programs };
  const names = await startServer({
    program: { path: join(programs, "epmd"), environment },
    args: (port) => ["-port", `${port}`],
  });
  try {
    const [distribution, securePort] = [await freePort(), await freePort()];
    const { cert, key } = makeCertificate({ hosts: ["127.0.0.1"] });
    const server = await startServer({
      program: { path: join(programs, "erlexec"), environment },
      environment: (port, folder) => ({
        ...settingsOf(base, port, folder),
        ERL_EPMD_PORT: `${names.port}`,
        RABBITMQ_DIST_PORT: `${distribution}`,
      }),
      args: (_, folder) => [
        ...["-noinput", "-s", "rabbit", "boot", "-boot", "start_sasl", "+W", "w"],
        ...["-syslog", "logger", "[]", "-syslog", "syslog_error_logger", "false"],
        ...["-kernel", "inet_dist_use_interface", "{127,0,0,1}"],
        // The default of 10 s is too short for a busy machine.
        ...["-rabbit", "handshake_timeout", "60000"],
        ...["-rabbit", "ssl_listeners", `[{"127.0.0.1",${securePort}}]`],
        ...["-rabbit", "ssl_options", certificateIn(folder, cert, key)],
      ],
    });
    const asked = await counting(server.port);
    const stop = async (): Promise<void> => {
      await asked.close();
      await server.stop();
      await names.stop();
    };
    const { count } = asked;
    return {
      port: server.port,
      url: `amqp://127.0.0.1:${server.port}`,
      secureUrl: `amqps://127.0.0.1:${securePort}`,
      cert,
      count,
      served: () => count(QUEUE),
      stop,
    };
  } catch (error) {
    await names.stop();
    throw error;
  }
}

/** Options in Erlang syntax. */
function certificateIn(folder: string, cert: string, key: string): string {
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key);
  return `[{certfile,"${folder}/cert.pem"},{keyfile,"${folder}/key.pem"}]`;
}

function settingsOf(base: string, port: number, folder: string): NodeJS.ProcessEnv {
  const [version = ""] = readdirSync(join(base, "lib/rabbitmq/lib"));
  const plugins = join(base, "lib/rabbitmq/lib", version, "plugins");
  return {
    ...{ EMU: "beam", PROGNAME: "erl", HOME: folder, SYS_PREFIX: folder, ERL_LIBS: plugins },
    RABBITMQ_NODENAME: "rabbit@localhost",
    RABBITMQ_NODE_PORT: `${port}`,
    RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
    RABBITMQ_MNESIA_BASE: join(folder, "data"),
    RABBITMQ_LOG_BASE: join(folder, "log"),
    RABBITMQ_LOGS: "-",
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "plugins"),
    RABBITMQ_PLUGINS_DIR: plugins,
    RABBITMQ_CONFIG_FILE: join(folder, "none"),
  };
}

/** A separate client that queries the server. */
async function counting(port: number) {
  const model = await amqp.connect(`amqp://127.0.0.1:${port}`);
  model.on("error", () => undefined);
  const channel = await model.createChannel();
  await channel.assertQueue(QUEUE);
  return {
    count: async (queue: string): Promise<number> => (await channel.checkQueue(queue)).messageCount,
    close: (): Promise<void> => model.close(),
  };
}

/** A frame of a type on a channel. */
export const frame = (kind: number, channel: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(7);
  head.writeUInt8(kind, 0);
  head.writeUInt16BE(channel, 1);
  head.writeUInt32BE(payload.length, 3);
  return Buffer.concat([head, payload, Buffer.of(0xce)]);
};

/** A method frame: the numbers of its class and method, and its arguments. */
export const method = (channel: number, ...bytes: readonly number[]): Buffer =>
  frame(1, channel, Buffer.from(bytes));

const long = (text: string): number[] => [0, 0, 0, text.length, ...Buffer.from(text)];
const START = method(0, 0, 10, 0, 10, 0, 9, 0, 0, 0, 0, ...long("PLAIN"), ...long("en_US"));

/** Replies by class and method of the request. */
const ANSWERS: Readonly<Record<string, Buffer>> = {
  "10.11": method(0, 0, 10, 0, 30, 0, 0, 0, 2, 0, 0, 0, 0),
  "10.40": method(0, 0, 10, 0, 41, 0),
  "20.10": method(1, 0, 20, 0, 11, 0, 0, 0, 0),
  "85.10": method(1, 0, 85, 0, 11),
};
const PUBLISH = "60.40";

/** Accepts every login, opens a channel, and invokes the callback for each message. */
export function listenMessages(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    let kept = Buffer.alloc(0);
    let greeted = false;
    socket.on("data", (bytes) => {
      kept = Buffer.concat([kept, bytes]);
      if (!greeted && kept.length >= 8) {
        greeted = true;
        kept = kept.subarray(8);
        socket.write(START);
      }
      while (greeted && kept.length >= 8 && kept.length >= 8 + kept.readUInt32BE(3)) {
        const [kind, length] = [kept.readUInt8(0), kept.readUInt32BE(3)];
        const payload = kept.subarray(7, 7 + length);
        kept = kept.subarray(8 + length);
        if (kind !== 1) continue;
        const asked = `${payload.readUInt16BE(0)}.${payload.readUInt16BE(2)}`;
        const answer = ANSWERS[asked];
        if (answer !== undefined) socket.write(answer);
        else if (asked === PUBLISH) onCall(socket);
      }
    });
  });
}
