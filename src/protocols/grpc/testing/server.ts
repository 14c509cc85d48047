/** A gRPC server that we did not write (@grpc/grpc-js), and one of frames by hand. */

import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import protobuf, { type Type } from "protobufjs";
import * as f from "../../http2/frames.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const SHOP_PROTO = fileURLToPath(
  new URL("../../../../examples/protocols/shop.proto", import.meta.url),
);

export interface ShopServer {
  readonly port: number;
  /** What came with the last call. */
  readonly metadata: () => grpc.Metadata;
  /** Calls of GetItem. */
  served(): Promise<number>;
  /** Calls of all kinds. */
  calls(): number;
  stop(): Promise<void>;
}

interface Wish {
  readonly id: string;
}

const itemOf = ({ id }: Wish): object => ({ id, name: `item ${id}`, unit: 1, prices: [0.5, 2] });

/** Answers items by their number; number 404 is not there. */
export async function startShop(credentials?: grpc.ServerCredentials): Promise<ShopServer> {
  const root = protobuf.loadSync(SHOP_PROTO);
  root.resolveAll();
  const { methods } = root.lookupService("shop.Catalog");
  let [calls, items] = [0, 0];
  let metadata = new grpc.Metadata();
  const seen = (call: { readonly metadata: grpc.Metadata }): void => {
    calls++;
    metadata = call.metadata;
  };
  const server = new grpc.Server();
  server.addService(definitionOf(methods), {
    GetItem: (call: grpc.ServerUnaryCall<Wish, object>, answer: grpc.sendUnaryData<object>) => {
      seen(call);
      items++;
      if (call.request.id !== "404") answer(null, itemOf(call.request));
      else answer({ code: grpc.status.NOT_FOUND, details: "no item 404 – really" });
    },
    List: (call: grpc.ServerWritableStream<{ count: number }, object>) => {
      seen(call);
      for (let id = 1; id <= call.request.count; id++) call.write(itemOf({ id: `${id}` }));
      call.end();
    },
    Put: (call: grpc.ServerReadableStream<object, object>, answer: grpc.sendUnaryData<object>) => {
      seen(call);
      let count = 0;
      call.on("data", () => count++);
      call.on("end", () => answer(null, { count }));
    },
    Quote: (call: grpc.ServerDuplexStream<Wish, object>) => {
      seen(call);
      call.on("data", (wish: Wish) => call.write(itemOf(wish)));
      call.on("end", () => call.end());
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    const how = credentials ?? grpc.ServerCredentials.createInsecure();
    server.bindAsync("127.0.0.1:0", how, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    port,
    metadata: () => metadata,
    served: () => Promise.resolve(items),
    calls: () => calls,
    stop: () => Promise.resolve(server.forceShutdown()),
  };
}

function definitionOf(methods: Readonly<Record<string, protobuf.Method>>): grpc.ServiceDefinition {
  const definition: Record<string, grpc.MethodDefinition<object, object>> = {};
  for (const [name, method] of Object.entries(methods)) {
    const [asked, answered] = [method.resolvedRequestType, method.resolvedResponseType] as Type[];
    definition[name] = {
      path: `/shop.Catalog/${name}`,
      requestStream: method.requestStream === true,
      responseStream: method.responseStream === true,
      requestSerialize: () => Buffer.alloc(0),
      requestDeserialize: (bytes) =>
        asked?.toObject(asked.decode(bytes), { longs: String }) as object,
      responseSerialize: (value) =>
        Buffer.from(answered?.encode(answered.fromObject(value)).finish() ?? []),
      responseDeserialize: () => ({}),
    };
  }
  return definition;
}

/** Lets clients in, and calls back for each request; what follows is up to the test. */
export function listenFrames(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    let pending = Buffer.alloc(0);
    let preface = f.PREFACE.length;
    socket.write(f.settingsFrame([]));
    socket.on("data", (piece: Buffer) => {
      pending = Buffer.concat([pending, piece]);
      if (pending.length < preface) return;
      pending = pending.subarray(preface);
      preface = 0;
      while (pending.length >= f.FRAME_HEAD_BYTES) {
        const end = f.FRAME_HEAD_BYTES + pending.readUIntBE(0, 3);
        if (pending.length < end) return;
        const type = pending[3];
        pending = pending.subarray(end);
        if (type === f.HEADERS) onCall(socket);
      }
    });
  });
}
