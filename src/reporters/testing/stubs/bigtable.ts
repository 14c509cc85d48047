/** Bigtable's MutateRows over gRPC: rejects single rows in an answer that succeeds. */

import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Protobuf } from "../../encoders/protobuf.ts";
import type { OnWrite, Served } from "./sockets.ts";

const [UNAVAILABLE, NO_PERMISSION] = [14, 7];

export async function serveBigtable(onWrite: OnWrite): Promise<Served> {
  const server = createServer();
  const open = new Set<{ destroy(): void }>();
  server.on("session", (session) => open.add(session));
  server.on("stream", (stream) => {
    const parts: Buffer[] = [];
    stream.on("error", () => {});
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("end", () => {
      const answer = onWrite(Buffer.concat(parts).toString("base64"));
      if (answer === "hang") return;
      const isPassing = answer === "wait" || answer === "busy";
      const status = isPassing ? String(UNAVAILABLE) : "0";
      stream.respond(
        { ":status": 200, "content-type": "application/grpc" },
        { waitForTrailers: true },
      );
      stream.on("wantTrailers", () =>
        stream.sendTrailers({ "grpc-status": status, "grpc-message": "it%20starts" }),
      );
      stream.end(isPassing ? undefined : rows(answer === "refuse" ? (NO_PERMISSION ?? 0) : 0));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const session of open) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function rows(code: number): Buffer {
  const status = new Protobuf().varint(1, code).text(2, code === 0 ? "" : "no entry");
  const entry = new Protobuf().varint(1, 0).message(2, status);
  const body = new Protobuf().message(1, entry).finish();
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(body.length, 1);
  return Buffer.concat([prefix, body]);
}
