/** The other nodes of one role, managers or gates, as one knows them: who is reached, in which version, and drains. */

import type { NodeId } from "../../base/ids.ts";
import type { NodeView } from "../messages.ts";

export type PeerNews =
  /** It can be reached, or cannot. `version`: of its program, as it greeted. */
  | {
      readonly kind: "peer";
      readonly peer: NodeId;
      readonly up: boolean;
      readonly version: string;
    }
  /** It takes no more work, or does again. */
  | { readonly kind: "peerDrains"; readonly peer: NodeId; readonly drains: boolean }
  /** Why its disk stores no files; empty: it does. Also of this node itself. */
  | { readonly kind: "diskProblem"; readonly peer: NodeId; readonly problem: string };

export class Peers {
  /** Those that can be reached, with their versions. */
  readonly #versions = new Map<string, string>();
  readonly #draining = new Set<string>();
  readonly #diskProblems = new Map<string, string>();

  /** How many can be reached. */
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

  /** Empty: its disk stores files, as far as is known. */
  diskProblemOf(name: string): string {
    return this.#diskProblems.get(name) ?? "";
  }

  /** What is shown of one. */
  view(name: string): Pick<NodeView, "status" | "version"> {
    const version = this.#versions.get(name);
    if (version === undefined) return { status: "lost", version: "" };
    return { status: this.#draining.has(name) ? "draining" : "alive", version };
  }
}
