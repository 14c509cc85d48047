/** Members with their addresses and last reported states, and the log, audit and event entries of changes. */

import type { NodeId } from "../../base/ids.ts";
import type { MemberChange } from "../../membership/swim/types.ts";
import { MemberAddresses } from "./member-addresses.ts";
import { type AuditObserver, memberEntry } from "./member-audit.ts";
import { confirmationLogs, eventOf } from "./member-events.ts";
import type { MemberOutput } from "./member-output.ts";
import { decodeMemberState, type MemberState } from "./member-state.ts";

export class MemberRoster {
  readonly addresses = new MemberAddresses();
  readonly states = new Map<NodeId, MemberState>();
  readonly observer: AuditObserver;
  readonly #out: MemberOutput;
  #changed = false;

  constructor(self: NodeId, out: MemberOutput) {
    this.#out = out;
    this.observer = { self, addressOf: (id) => this.addresses.get(id) };
  }

  onChange(change: MemberChange): void {
    const { member, from, to, why, kind } = change;
    const { id, incarnation, status } = member;
    const { address } = member.record;
    this.addresses.set(id, address, status === "alive" || status === "suspect");
    this.#changed = true;
    if (kind === "forget") {
      this.states.delete(id);
      this.addresses.delete(id);
    }
    const level = kind === "failed" || kind === "suspect" ? "warn" : "info";
    this.#out.log(level, `swim.${kind}`, { member: id, address, from, to, incarnation, why });
    for (const { event, fields } of confirmationLogs(change)) this.#out.log("info", event, fields);
    const entry = memberEntry(change, this.observer);
    if (entry !== null) this.#out.record(entry);
    const event = eventOf(change);
    if (event !== null) this.#out.event(event);
  }

  /** Null for a state that cannot be decoded: the packet that carried it still counts. (EMB-6) */
  onState(id: NodeId, body: Uint8Array): MemberState | null {
    const state = decodeMemberState(body);
    if (state !== null) this.states.set(id, state);
    return state;
  }

  /** Whether members joined, left or moved since the last call. */
  takeChanged(): boolean {
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }
}
