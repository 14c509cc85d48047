/**
 * Cron expressions of five fields by some clock: minute hour day-of-month month day-of-week. Each field is `*`, a
 * number, a range `a-b`, a list `a,b`, or any of them with a step `/n`. Months and weekdays may be written by their
 * English short names; 7 is Sunday too. When both day fields are restricted, a day that matches either counts, as in
 * every cron.
 *
 * Times are epoch milliseconds; calendars are computed by hand, because this module has no clock.
 */

import { civilDate } from "../base/civil.ts";

export interface Cron {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** Both day fields are restricted: either may match. */
  readonly eitherDay: boolean;
}

type CronResult =
  | { readonly ok: true; readonly cron: Cron }
  | { readonly ok: false; readonly problem: string };

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const ALIASES: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
};

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** A leap day on a given weekday occurs at the latest after 40 years (around 2100). */
const DAYS_SEARCHED_MAX = 366 * 41;

export function parseCron(text: string): CronResult {
  const fields = (ALIASES[text.trim()] ?? text).trim().split(/\s+/);
  if (fields.length !== 5) {
    return refuse(
      `"${text}" has ${fields.length} fields; cron has five: minute hour day month weekday`,
    );
  }
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const parsed = {
    minutes: parseField(minute, 0, 59, []),
    hours: parseField(hour, 0, 23, []),
    days: parseField(day, 1, 31, []),
    months: parseField(month, 1, 12, MONTHS),
    weekdays: parseField(weekday, 0, 7, WEEKDAYS),
  };
  for (const [name, field] of Object.entries(parsed)) {
    if (typeof field === "string") return refuse(`"${text}": ${name}: ${field}`);
  }
  const { minutes, hours, days, months, weekdays } = parsed as Record<
    keyof typeof parsed,
    Set<number>
  >;
  if (weekdays.has(7)) weekdays.add(0);
  const cron = {
    minutes,
    hours,
    days,
    months,
    weekdays,
    eitherDay: day !== "*" && weekday !== "*",
  };
  if (nextTick(cron, 0) === undefined) return refuse(`"${text}" never happens`);
  return { ok: true, cron };
}

/** Returns the first tick after `afterMs`; undefined when there is none within 41 years. */
export function nextTick(cron: Cron, afterMs: number): number | undefined {
  const from = Math.floor(afterMs / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
  const firstDay = Math.floor(from / DAY_MS);
  for (let day = firstDay; day < firstDay + DAYS_SEARCHED_MAX; day++) {
    if (!matchesDay(cron, day)) continue;
    const startMinute = day === firstDay ? (from - day * DAY_MS) / MINUTE_MS : 0;
    for (let minute = startMinute; minute < 1_440; minute++) {
      if (!cron.hours.has(Math.floor(minute / 60))) {
        minute += 59 - (minute % 60);
        continue;
      }
      if (cron.minutes.has(minute % 60)) return day * DAY_MS + minute * MINUTE_MS;
    }
  }
  return undefined;
}

function matchesDay(cron: Cron, day: number): boolean {
  const { month, dayOfMonth } = civilDate(day);
  if (!cron.months.has(month)) return false;
  const byDay = cron.days.has(dayOfMonth);
  const byWeekday = cron.weekdays.has((((day + 4) % 7) + 7) % 7);
  return cron.eitherDay ? byDay || byWeekday : byDay && byWeekday;
}

function parseField(
  text: string,
  low: number,
  high: number,
  names: readonly string[],
): Set<number> | string {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:\/(\d+))?$/i.exec(part);
    if (match === null) return `"${part}" is not a number, range, list or step`;
    const [, range = "", stepText] = match;
    const step = stepText === undefined ? 1 : Number(stepText);
    if (step < 1) return `a step of ${step} goes nowhere`;
    const [firstText = "", lastText] =
      range === "*" ? [String(low), String(high)] : range.split("-");
    const first = numberOf(firstText, low, names);
    const openEnd = stepText === undefined ? first : high;
    const last = lastText === undefined ? openEnd : numberOf(lastText, low, names);
    if (!(first >= low && last <= high)) return `"${part}" is outside ${low}-${high}`;
    if (first > last) return `"${part}" runs backwards`;
    for (let value = first; value <= last; value += step) values.add(value);
  }
  return values;
}

function numberOf(text: string, low: number, names: readonly string[]): number {
  if (/^\d+$/.test(text)) return Number(text);
  const at = names.indexOf(text.toLowerCase());
  return at < 0 ? Number.NaN : at + low;
}

function refuse(problem: string): CronResult {
  return { ok: false, problem };
}
