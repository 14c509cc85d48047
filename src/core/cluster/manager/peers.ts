/** Other nodes of one role, managers or gates: reachable or not, version, draining. */

import type { NodeId } from "../../base/ids.ts";
import type { NodeView } from "../messages.ts";

export type PeerNews =
  /** Reachability of a peer. `version`: program version from its greeting. */
  | {
      readonly kind: "peer";
      readonly peer: NodeId;
      readonly up: boolean;
      readonly version: string;
    }
  /** The peer started or stopped draining. */
  | { readonly kind: "peerDrains"; readonly peer: NodeId; readonly drains: boolean }
  /** Why the disk of a node, possibly this one, stores no files; empty: it does. */
  | { readonly kind: "diskProblem"; readonly peer: NodeId; readonly problem: string };

export class Peers {
  /** Reachable peers with their versions. */
  readonly #versions = new Map<string, string>();
  readonly #draining = new Set<string>();
  readonly #diskProblems = new Map<string, string>();

  /** Number of reachable peers. */
  get size(): number {
    return this.#versions.size;
  }

  hear(news: PeerNews): void {
    if (news.kind === "peer") {
      if (news.up) this.#versions.set(news.peer, news.version);
      else this.#versions.delete(news.peer);
    } else if (news.kind === "diskProblem") this.#diskProblems.set(news.peer, news.problem);
    else if (news.drains) this.#draining.add(news.peer);
    else this.#draining.delete(news.peer);
  }

  /** Empty when the disk stores files, as far as is known. */
  diskProblemOf(name: string): string {
    return this.#diskProblems.get(name) ?? "";
  }

  /** Node view of a peer. */
  view(name: string): Pick<NodeView, "status" | "version"> {
    const version = this.#versions.get(name);
    if (version === undefined) return { status: "lost", version: "" };
    return { status: this.#draining.has(name) ? "draining" : "alive", version };
  }
}
