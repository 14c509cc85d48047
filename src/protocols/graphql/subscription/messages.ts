/**
 * Messages of the subprotocol graphql-transport-ws, which carries GraphQL over a WebSocket: builds client messages, and
 * parses and checks server messages.
 */

import { type Answer, answerOf, errorOf, type GraphqlError } from "../response.ts";

export const SUBPROTOCOL = "graphql-transport-ws";

export const PONG = JSON.stringify({ type: "pong" });

export function initMessage(payload: object | undefined): string {
  return JSON.stringify({ type: "connection_init", payload });
}

export function subscribeMessage(id: string, payload: object): string {
  return JSON.stringify({ id, type: "subscribe", payload });
}

export function completeMessage(id: string): string {
  return JSON.stringify({ id, type: "complete" });
}

export type ServerMessage =
  | { readonly type: "connection_ack" | "ping" | "pong" }
  | { readonly type: "next"; readonly id: string; readonly answer: Answer }
  | { readonly type: "error"; readonly id: string; readonly errors: readonly GraphqlError[] }
  | { readonly type: "complete"; readonly id: string };

/** Throws a readable message for anything that the subprotocol does not define. */
export function readMessage(message: unknown): ServerMessage {
  if (typeof message !== "object" || message === null)
    throw new Error("a message is not an object");
  const { id, payload, type } = message as Readonly<Record<string, unknown>>;
  if (type === "connection_ack" || type === "ping" || type === "pong") return { type };
  if (typeof id !== "string") throw new Error("a message has no id");
  if (type === "next") return { type, id, answer: answerOf(payload) };
  if (type === "complete") return { type, id };
  if (type !== "error" || !Array.isArray(payload))
    throw new Error(`a message is of the type ${JSON.stringify(type)?.slice(0, 40)}`);
  return { type, id, errors: payload.map(errorOf) };
}
