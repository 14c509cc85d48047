/** What is asked of a Kafka cluster, and what it answers. */

export interface KafkaMessage {
  readonly key?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** By the key, or in turn, where it is not given. */
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
      /** "" gives each virtual user a group of its own. */
      readonly group: string;
      readonly fromBeginning: boolean;
      /** It outlives the iteration that it began in. */
      readonly kept: boolean;
    }
  | { readonly kind: "receive"; readonly topic: string }
  | { readonly kind: "ping" };

/** Where the first message of a partition was put; "-1" where nobody waited to hear. */
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
  /** When it was produced, by the clock of who did it, in milliseconds since 1970. */
  readonly producedAtMs: number;
  /** From there until it was here, which was asked of this machine's clock. */
  readonly latencyMs: number;
}
