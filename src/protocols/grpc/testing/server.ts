/** A third-party gRPC server (@grpc/grpc-js), and one that is scripted frame by frame. */

import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import protobuf, { type Type } from "protobufjs";
import descriptor from "protobufjs/ext/descriptor.js";
import * as f from "../../http2/frames.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const SHOP_PROTO = fileURLToPath(
  new URL("../../../../examples/protocols/shop.proto", import.meta.url),
);

export interface ShopServer {
  readonly port: number;
  /** Metadata of the last call. */
  readonly metadata: () => grpc.Metadata;
  /** Calls of GetItem. */
  served(): Promise<number>;
  /** Calls of all kinds. */
  calls(): number;
  stop(): Promise<void>;
}

interface ItemRequest {
  readonly id: string;
}

const itemOf = ({ id }: ItemRequest): object => ({
  id,
  name: `item ${id}`,
  unit: 1,
  prices: [0.5, 2],
});

/** Supported versions of the reflection service. */
type Reflection = readonly ("v1" | "v1alpha")[];

/** Returns items by id; id 404 does not exist. */
export async function startShop(
  credentials?: grpc.ServerCredentials,
  reflection: Reflection = [],
): Promise<ShopServer> {
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
    GetItem: (
      call: grpc.ServerUnaryCall<ItemRequest, object>,
      answer: grpc.sendUnaryData<object>,
    ) => {
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
    Quote: (call: grpc.ServerDuplexStream<ItemRequest, object>) => {
      seen(call);
      call.on("data", (request: ItemRequest) => call.write(itemOf(request)));
      call.on("end", () => call.end());
    },
  });
  for (const version of reflection) addReflection(server, version, root);
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

/**
 * A reflection service following reflection.proto: services by name, files by symbol and by name. The messages are in a
 * separate file, which the file of the services imports.
 */
function addReflection(server: grpc.Server, version: string, root: protobuf.Root): void {
  const [shop] = root.toDescriptor("proto3").file ?? [];
  const messages = { ...shop, name: "shop/messages.proto", service: [] };
  const services = {
    ...{ name: "shop/catalog.proto", package: "shop", syntax: "proto3" },
    ...{ dependency: ["shop/messages.proto"], service: shop?.service ?? [] },
  };
  const bytesOf = (file: object): Buffer =>
    Buffer.from(descriptor.FileDescriptorProto.encode(file).finish());
  const answerTo = ({ by, value }: { readonly by: number; readonly value: string }): Buffer => {
    if (by === 7) return field(6, field(1, field(1, Buffer.from("shop.Catalog"))));
    if (value === "shop.Catalog") return field(4, field(1, bytesOf(services)));
    if (value === "shop/messages.proto") return field(4, field(1, bytesOf(messages)));
    return field(7, field(2, Buffer.from(`there is no ${value}`)));
  };
  const method = {
    path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
    requestStream: true,
    responseStream: true,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: requestOf,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  };
  server.addService({ ServerReflectionInfo: method } as grpc.ServiceDefinition, {
    ServerReflectionInfo: (call: grpc.ServerDuplexStream<ReturnType<typeof requestOf>, Buffer>) => {
      call.on("data", (asked: ReturnType<typeof requestOf>) => call.write(answerTo(asked)));
      call.on("end", () => call.end());
    },
  });
}

/** Encodes a length-delimited field. */
function field(number: number, bytes: Buffer): Buffer {
  const writer = protobuf.Writer.create().uint32((number << 3) | 2);
  return Buffer.from(writer.bytes(bytes).finish());
}

/** Decodes the single field of a reflection request. */
function requestOf(bytes: Buffer): { readonly by: number; readonly value: string } {
  const reader = protobuf.Reader.create(bytes);
  return { by: reader.uint32() >>> 3, value: reader.string() };
}

function definitionOf(methods: Readonly<Record<string, protobuf.Method>>): grpc.ServiceDefinition {
  const definition: Record<string, grpc.MethodDefinition<object, object>> = {};
  for (const [name, method] of Object.entries(methods)) {
    const [requestType, responseType] = [
      method.resolvedRequestType,
      method.resolvedResponseType,
    ] as Type[];
    definition[name] = {
      path: `/shop.Catalog/${name}`,
      requestStream: method.requestStream === true,
      responseStream: method.responseStream === true,
      requestSerialize: () => Buffer.alloc(0),
      requestDeserialize: (bytes) =>
        requestType?.toObject(requestType.decode(bytes), { longs: String }) as object,
      responseSerialize: (value) =>
        Buffer.from(responseType?.encode(responseType.fromObject(value)).finish() ?? []),
      responseDeserialize: () => ({}),
    };
  }
  return definition;
}

/** Accepts clients and invokes the callback for each request; the test does the rest. */
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
