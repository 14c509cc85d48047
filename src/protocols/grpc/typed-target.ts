/**
 * A target that knows what its server serves: methods, requests and answers as `hyperscale types` wrote
 * them of a .proto file. Types only; what runs is a `GrpcTarget`.
 *
 *   const shop = grpc.target<Methods>("grpc://shop.test:50051", { proto: "shop.proto" });
 *   const item = await step("item", shop.unary("shop.Catalog/GetItem", { id: 7 }));
 */

import type { GrpcCall, GrpcCallOptions, GrpcKind, GrpcTarget } from "./target.ts";

/** Of `Methods["shop.Catalog/GetItem"]`. */
export interface GrpcMethod {
  readonly kind: GrpcKind;
  readonly request: object;
  readonly response: object;
}

export interface TypedGrpcTarget<Methods extends { readonly [Name in keyof Methods]: GrpcMethod }>
  extends Pick<GrpcTarget, "raw" | "ping"> {
  /** One message, one answer. */
  unary<Name extends NameOf<Methods, "unary">>(
    method: Name,
    message: Methods[Name]["request"],
    options?: GrpcCallOptions,
  ): GrpcCall<Methods[Name]["response"]>;

  /** One message, a stream of answers: `value` is the list of them when the server has ended it. */
  serverStream<Name extends NameOf<Methods, "serverStream">>(
    method: Name,
    message: Methods[Name]["request"],
    options?: GrpcCallOptions,
  ): GrpcCall<readonly Methods[Name]["response"][]>;

  /** A stream of messages, one answer. */
  clientStream<Name extends NameOf<Methods, "clientStream">>(
    method: Name,
    messages: readonly Methods[Name]["request"][],
    options?: GrpcCallOptions,
  ): GrpcCall<Methods[Name]["response"]>;

  /** Streams both ways: all messages are sent, and `value` is the list of all answers. */
  bidi<Name extends NameOf<Methods, "bidi">>(
    method: Name,
    messages: readonly Methods[Name]["request"][],
    options?: GrpcCallOptions,
  ): GrpcCall<readonly Methods[Name]["response"][]>;
}

/** Of the methods that are called so. */
type NameOf<Methods extends { readonly [Name in keyof Methods]: GrpcMethod }, Kind> = {
  [Name in keyof Methods]: Methods[Name]["kind"] extends Kind ? Name : never;
}[keyof Methods];
