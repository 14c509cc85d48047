/** Commands for a RabbitMQ server and the values they return. */

export interface MessageOptions {
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly contentType?: string;
  readonly correlationId?: string;
  readonly replyTo?: string;
  /** The server drops the message after this many milliseconds. */
  readonly expirationMs?: number;
  /** Survives a restart of the server in a durable queue; false by default. */
  readonly persistent?: boolean;
  /** Refused with NO_ROUTE when no queue is bound; without it such a message is dropped. */
  readonly mandatory?: boolean;
}

interface MessageProperties extends Omit<MessageOptions, "expirationMs"> {
  readonly expiration?: string;
}

export interface QueueOptions {
  /** Survives a restart of the server; true by default. */
  readonly durable?: boolean;
  readonly autoDelete?: boolean;
  readonly exclusive?: boolean;
  /** Example: `{ "x-queue-type": "quorum" }`. */
  readonly arguments?: Readonly<Record<string, unknown>>;
}

export type ExchangeType = "direct" | "fanout" | "topic" | "headers";

export type RabbitmqCommand =
  | {
      readonly kind: "publish";
      readonly exchange: string;
      readonly routingKey: string;
      readonly content: Buffer;
      /** In the format of the driver. */
      readonly properties: MessageProperties;
      /** Waits for the server's acknowledgement. */
      readonly confirm: boolean;
    }
  | { readonly kind: "get"; readonly queue: string }
  | {
      readonly kind: "consume";
      readonly queue: string;
      readonly prefetch: number;
      /** Outlives the iteration in which it was created. */
      readonly kept: boolean;
    }
  | { readonly kind: "receive"; readonly queue: string }
  | { readonly kind: "queue"; readonly queue: string; readonly options: QueueOptions }
  | {
      readonly kind: "exchange";
      readonly exchange: string;
      readonly type: ExchangeType;
      readonly durable: boolean;
    }
  | {
      readonly kind: "bind";
      readonly queue: string;
      readonly exchange: string;
      readonly routingKey: string;
    }
  | { readonly kind: "purge"; readonly queue: string }
  | { readonly kind: "delete"; readonly queue: string }
  | { readonly kind: "ping" };

export interface QueueState {
  readonly messages: number;
  readonly consumers: number;
}

export interface ReceivedMessage {
  readonly queue: string;
  readonly exchange: string;
  readonly routingKey: string;
  readonly headers: ReadonlyMap<string, unknown>;
  readonly correlationId: string;
  readonly replyTo: string;
  readonly redelivered: boolean;
  readonly data: Buffer;
}
