/** What is asked of a RabbitMQ server, and what it answers. */

export interface MessageOptions {
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly contentType?: string;
  readonly correlationId?: string;
  readonly replyTo?: string;
  /** The server forgets it after so many milliseconds. */
  readonly expirationMs?: number;
  /** Survives a restart of the server in a durable queue; false by default. */
  readonly persistent?: boolean;
  /** Refused with NO_ROUTE where it leads to no queue; without it such a message is dropped. */
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
  /** Such as `{ "x-queue-type": "quorum" }`. */
  readonly arguments?: Readonly<Record<string, unknown>>;
}

export type ExchangeType = "direct" | "fanout" | "topic" | "headers";

export type RabbitmqCommand =
  | {
      readonly kind: "publish";
      readonly exchange: string;
      readonly routingKey: string;
      readonly content: Buffer;
      /** As the driver takes them. */
      readonly properties: MessageProperties;
      /** Waits until the server has it. */
      readonly confirm: boolean;
    }
  | { readonly kind: "get"; readonly queue: string }
  | {
      readonly kind: "consume";
      readonly queue: string;
      readonly prefetch: number;
      /** It outlives the iteration that it began in. */
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
