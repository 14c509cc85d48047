/** gRPC's own client for Node, one channel for each loop. */

import grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { GrpcTarget } from "../../src/protocols/grpc/target.ts";
import { SHOP_PROTO } from "../../src/protocols/grpc/testing/server.ts";

export function grpcTarget(port: number): GrpcTarget {
  return new GrpcTarget(`grpc://127.0.0.1:${port}`, { proto: SHOP_PROTO });
}

let channels = 0;

export async function grpcPeer(port: number): Promise<() => Promise<unknown>> {
  const root = await protobuf.load(SHOP_PROTO);
  const service = root.lookupService("shop.Catalog");
  const method = service.methods["GetItem"];
  if (method === undefined) throw new Error("the service has no GetItem");
  const [asked, answered] = [
    root.lookupType(`shop.${method.requestType}`),
    root.lookupType(`shop.${method.responseType}`),
  ];
  // Channels with equal options share one connection.
  const options = { "grpc.channel_number": ++channels };
  const credentials = grpc.credentials.createInsecure();
  const client = new grpc.Client(`127.0.0.1:${port}`, credentials, options);
  const message = asked.create({ id: 7 });
  return () =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        "/shop.Catalog/GetItem",
        (value: protobuf.Message) => Buffer.from(asked.encode(value).finish()),
        (bytes: Buffer) => answered.decode(bytes),
        message,
        (error, value) => (error === null ? resolve(value) : reject(error)),
      );
    });
}
