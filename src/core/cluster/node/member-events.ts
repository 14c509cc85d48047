/** Events of a member process for observers. The driver adds the time of day. */

import type { MemberChange } from "../../membership/swim/types.ts";

type MemberEventName =
  | "member-join"
  | "member-suspect"
  | "member-failed"
  | "member-leave"
  | "member-update";

export type MemberEvent =
  | {
      readonly event: MemberEventName;
      readonly member: string;
      readonly address: string;
      readonly role: string;
      readonly datacenter: string;
      readonly from: string | null;
      readonly to: string | null;
      readonly incarnation: number;
      readonly why: string;
    }
  | {
      /** A forbidden action of a peer or operator, or a condition that does not heal by itself. */
      readonly event: "alarm";
      readonly code: string;
      /** Member that caused it, as it identifies itself. */
      readonly member: string | null;
      readonly about: string;
    }
  | {
      readonly event: "leader-change";
      /** Null if the group has no leader now. */
      readonly member: string | null;
      readonly group: string;
      readonly term: number;
      readonly why: string;
    };

/** Current leader of a group; null if there is none. */
export interface LeaderNews {
  readonly group: string;
  readonly leader: string | null;
  readonly term: number;
  readonly why: string;
}

/** Event of each change; null for changes that are only logged. */
const EVENT_OF: Readonly<Record<MemberChange["kind"], MemberEventName | null>> = {
  join: "member-join",
  update: "member-update",
  suspect: "member-suspect",
  refute: "member-update",
  failed: "member-failed",
  leave: "member-leave",
  confirmed: null,
  forget: null,
};

interface ConfirmationLog {
  readonly event: "PeerConfirmed" | "PeerUnconfirmedCleanup" | "RoleConfirmationAttempt";
  readonly fields: Readonly<Record<string, string | number>>;
}

/** Log entries for members that were unconfirmed before, under the names of AD-35. */
export function confirmationLogs({ kind, member, why }: MemberChange): readonly ConfirmationLog[] {
  const { ageMs, confirmAttempts: attempts, id, record, rttMs, rttSamplesMs } = member;
  const isRemoved = kind === "forget" && !member.confirmed;
  if (kind !== "confirmed" && !isRemoved) return [];
  const outcome = isRemoved ? "removed" : "confirmed";
  const attempted: ConfirmationLog = {
    event: "RoleConfirmationAttempt",
    fields: { member: id, role: record.role, attempts, outcome },
  };
  const ended: ConfirmationLog = isRemoved
    ? {
        event: "PeerUnconfirmedCleanup",
        fields: { member: id, reason: why, elapsed: ageMs },
      }
    : {
        event: "PeerConfirmed",
        fields: {
          ...{ member: id, rtt: rttMs ?? 0, samples: rttSamplesMs.length },
          error: rttMs === null ? 0 : Math.abs((member.rttEstimateMs ?? rttMs) - rttMs),
        },
      };
  return attempts > 0 ? [attempted, ended] : [ended];
}

/** Null for a change that is only logged. */
export function eventOf({ kind, member, from, to, why }: MemberChange): MemberEvent | null {
  const event = EVENT_OF[kind];
  if (event === null) return null;
  const { id, incarnation } = member;
  const { address, role, datacenter } = member.record;
  return { event, member: id, address, role, datacenter, from, to, incarnation, why };
}
