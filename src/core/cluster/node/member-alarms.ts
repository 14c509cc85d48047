/** Alarms of a member: forbidden actions of a peer or operator, and conditions that last until someone acts. */

import type { ElectionAlarm } from "../../membership/election/types.ts";
import type { SwimWarning } from "../../membership/swim/types.ts";

/** `UNREADABLE`: sealed with our key, but not a message of this version, or one with a number out of range. */
export type WarningCode = SwimWarning | ElectionAlarm | "UNREADABLE";

/** Codes that are alarms, with an explanation for operators; other warnings are only logged. */
const MEANINGS: Readonly<Partial<Record<WarningCode, string>>> = {
  INCARNATION_JUMP: "a member reported an implausibly high incarnation, which was ignored",
  INCARNATION_EXHAUSTED: "our incarnation has reached its limit: give this member a new name",
  STATE_JUMP: "a member reported an implausibly high state version, which was ignored",
  TERM_JUMP: "a voter reported an implausibly high term, which was ignored",
  TERM_EXHAUSTED: "the term has reached its limit: start the voters under new names",
  UNREADABLE:
    "a sender with the cluster key sends unreadable messages: check its version and health",
  ELECTORATE_MISMATCH: "make --voters agree on all members of the group; its votes do not count",
};

/** Null for a warning that is not an alarm. */
export function alarmMeaning(code: WarningCode): string | null {
  return MEANINGS[code] ?? null;
}
