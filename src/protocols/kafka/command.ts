/** Commands for a Kafka cluster and the values they return. */

export interface KafkaMessage {
  readonly key?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Chosen by the key, or round-robin, when not given. */
  readonly partition?: number;
}

export interface EncodedMessage {
  readonly key: Buffer | string | null;
  readonly value: Buffer;
  readonly headers: Record<string, string>;
  readonly partition?: number;
}

export type KafkaCommand =
  | {
      readonly kind: "produce";
      readonly topic: string;
      readonly messages: readonly EncodedMessage[];
      readonly acks: number;
      readonly gzip: boolean;
    }
  | {
      readonly kind: "subscribe";
      readonly topic: string;
      /** "" gives each virtual user its own group. */
      readonly group: string;
      readonly fromBeginning: boolean;
      /** Outlives the iteration in which it was created. */
      readonly kept: boolean;
    }
  | { readonly kind: "receive"; readonly topic: string }
  | { readonly kind: "ping" };

/** Partition and offset of the first message; offset "-1" when no acknowledgement was requested. */
export interface Placement {
  readonly partition: number;
  readonly offset: string;
}

export interface ReceivedMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly key: Buffer | null;
  readonly data: Buffer;
  readonly headers: ReadonlyMap<string, string>;
  /** Time of production by the producer's clock, in milliseconds since 1970. */
  readonly producedAtMs: number;
  /** Time from production to receipt, by this machine's clock. */
  readonly latencyMs: number;
}
