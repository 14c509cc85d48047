/** Alarms of a member: forbidden actions of a peer or operator, and conditions that last until someone acts. */

import type { ElectionAlarm } from "../../membership/election/types.ts";
import type { SwimWarning } from "../../membership/swim/types.ts";

/** `UNREADABLE`: sealed with our key, but not a message of this version, or one with a number out of range. */
export type WarningCode = SwimWarning | ElectionAlarm | "UNREADABLE";

/** Codes that are alarms, with an explanation for operators; other warnings are only logged. */
const MEANINGS: Readonly<Partial<Record<WarningCode, string>>> = {
  INCARNATION_JUMP: "a member told of an incarnation that nobody counted to; it was not believed",
  INCARNATION_EXHAUSTED: "our incarnation is at its bound: give this member a new name",
  STATE_JUMP: "a member told of a version of its state that nobody counted to; it was not believed",
  TERM_JUMP: "a voter told of a term that nobody counted to; it was not believed",
  TERM_EXHAUSTED: "the term is at its bound: start the voters under new names",
  UNREADABLE: "somebody with the key sends what cannot be read here: see its version and health",
  ELECTORATE_MISMATCH: "make --voters agree on all members of the group; its votes do not count",
};

/** Null for a warning that is no alarm. */
export function alarmMeaning(code: WarningCode): string | null {
  return MEANINGS[code] ?? null;
}
