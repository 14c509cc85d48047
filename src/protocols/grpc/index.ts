/** Entry point of gRPC: `import { grpc } from "hyperscalejs/grpc"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { GrpcCommand } from "./connection.ts";
import { GRPC, type GrpcOptions, GrpcTarget } from "./target.ts";
import type { GrpcMethod, TypedGrpcTarget } from "./typed-target.ts";

export type { ProtoFile } from "./schema.ts";
export type {
  GrpcCall,
  GrpcCallOptions,
  GrpcMessage,
  GrpcOptions,
  GrpcResponse,
  GrpcTarget,
} from "./target.ts";
export type { GrpcMethod, TypedGrpcTarget } from "./typed-target.ts";

export type GrpcClient = TargetClient<GrpcCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly grpc: GrpcClient;
  }
}

/** A server: `grpc.target("grpc://shop.test:50051", { proto: "shop.proto" })`; grpcs: over TLS. */
function target(address: string, options?: GrpcOptions): GrpcTarget;
/** Typed by the output of `hyperscale types` for its .proto file: `grpc.target<Methods>(…)`. */
function target<Methods extends { readonly [Name in keyof Methods]: GrpcMethod }>(
  address: string,
  options?: GrpcOptions,
): TypedGrpcTarget<Methods>;
function target(address: string, options?: GrpcOptions): GrpcTarget {
  return new GrpcTarget(address, options);
}

export const grpc = { target };

registerProtocol({
  name: "grpc",
  client: (session) => new TargetClient<GrpcCommand>(session),
  ping: {
    schemes: Object.keys(GRPC.schemes),
    call: (address, options) => new GrpcTarget(address, options).ping(),
  },
});
