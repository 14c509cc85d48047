/**
 * \n A target that is typed by its schema: methods, requests and responses as `hyperscale types` generated them from a
 * .proto file. Types only; at run time it is a `GrpcTarget`.
 *
 *   const shop = grpc.target<Methods>("grpc://shop.test:50051", { proto: "shop.proto" });
 *   const item = await step("item", shop.unary("shop.Catalog/GetItem", { id: 7 }));
 */

import type { GrpcCall, GrpcCallOptions, GrpcKind, GrpcTarget } from "./target.ts";

/** Type of `Methods["shop.Catalog/GetItem"]`. */
export interface GrpcMethod {
  readonly kind: GrpcKind;
  readonly request: object;
  readonly response: object;
}

export interface TypedGrpcTarget<Methods extends { readonly [Name in keyof Methods]: GrpcMethod }>
  extends Pick<GrpcTarget, "raw" | "ping"> {
  /** One request message, one response message. */
  unary<Name extends NameOf<Methods, "unary">>(
    method: Name,
    message: Methods[Name]["request"],
    options?: GrpcCallOptions,
  ): GrpcCall<Methods[Name]["response"]>;

  /** One request message, a stream of responses; `value` is the list of them once the server has closed the stream. */
  serverStream<Name extends NameOf<Methods, "serverStream">>(
    method: Name,
    message: Methods[Name]["request"],
    options?: GrpcCallOptions,
  ): GrpcCall<readonly Methods[Name]["response"][]>;

  /** A stream of request messages, one response message. */
  clientStream<Name extends NameOf<Methods, "clientStream">>(
    method: Name,
    messages: readonly Methods[Name]["request"][],
    options?: GrpcCallOptions,
  ): GrpcCall<Methods[Name]["response"]>;

  /** Streams in both directions: all messages are sent, and `value` is the list of all responses. */
  bidi<Name extends NameOf<Methods, "bidi">>(
    method: Name,
    messages: readonly Methods[Name]["request"][],
    options?: GrpcCallOptions,
  ): GrpcCall<readonly Methods[Name]["response"][]>;
}

/** Names of the methods of this kind. */
type NameOf<Methods extends { readonly [Name in keyof Methods]: GrpcMethod }, Kind> = {
  [Name in keyof Methods]: Methods[Name]["kind"] extends Kind ? Name : never;
}[keyof Methods];
