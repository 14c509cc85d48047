/** What a member raises an alarm about: what a peer or an operator must not do, and what stays until somebody acts. */

import type { ElectionAlarm } from "../../membership/election/types.ts";
import type { SwimWarning } from "../../membership/swim/types.ts";

/** `UNREADABLE`: sealed with our key, and yet no message of this version, or one with a number beyond its bound. */
export type WarningCode = SwimWarning | ElectionAlarm | "UNREADABLE";

/** Codes that are alarms, with what they mean for whoever reads them; other warnings are only logged. */
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
