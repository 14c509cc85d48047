/** Effects of one step of a member process, in order. */

import type {
  AuditDetail,
  AuditEvent,
  AuditKind,
  AuditRequester,
} from "../../../host/ports/audit.ts";
import type { LogFields, LogLevel } from "../../../host/ports/log.ts";
import { alarmMeaning, type WarningCode } from "./member-alarms.ts";
import type { MemberEvent } from "./member-events.ts";
import type { MemberEffect } from "./member-types.ts";

export class MemberOutput {
  #effects: MemberEffect[] = [];

  push(effect: MemberEffect): void {
    this.#effects.push(effect);
  }

  /** Returns all effects since the last call. */
  take(): readonly MemberEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  log(level: LogLevel, event: string, fields: LogFields): void {
    this.#effects.push({ kind: "log", level, event, fields });
  }

  event(event: MemberEvent): void {
    this.#effects.push({ kind: "event", event });
  }

  record(entry: AuditEvent): void {
    this.#effects.push({ kind: "audit", entry });
  }

  /** Records a request to this member in the audit log. */
  recordRequest(
    kind: AuditKind,
    subject: string,
    requester: AuditRequester,
    detail: AuditDetail = {},
  ): void {
    this.record({ kind, subject, requester, detail });
  }

  /** An alarm is also an event; other warnings are only logged. */
  warn(code: WarningCode, member: string | null, about: string): void {
    const meaning = alarmMeaning(code);
    if (meaning === null) {
      this.log("warn", "swim.warning", { code, about });
      return;
    }
    this.log("error", "agent.alarm", { code, member, about, meaning });
    this.event({ event: "alarm", code, member, about });
  }
}
