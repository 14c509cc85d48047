/** Where the answer to a request goes. */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";

export type Reply =
  | { readonly kind: "client"; readonly token: number }
  | { readonly kind: "peer"; readonly node: NodeId; readonly id: number }
  /** The cache of keys, which answers all who wait for this one. */
  | { readonly kind: "keyCache"; readonly key: string; readonly token: number }
  /** A cancel that this node keeps until it is decided. */
  | { readonly kind: "cancel"; readonly key: string }
  /** The shard that has this job founded. */
  | {
      readonly kind: "shard";
      readonly shard: GroupId;
      readonly key: string;
      readonly jobId: string;
    };
