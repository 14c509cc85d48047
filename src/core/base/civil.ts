/** The calendar by hand, for rooms without a clock: days since 1970-01-01 to a date, proleptic Gregorian. */

interface CivilDate {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly dayOfMonth: number;
}

/** Hinnant's algorithm. */
export function civilDate(day: number): CivilDate {
  const z = day + 719_468;
  const era = Math.floor(z / 146_097);
  const doe = z - era * 146_097;
  const yoe = Math.floor(
    (doe - Math.floor(doe / 1_460) + Math.floor(doe / 36_524) - Math.floor(doe / 146_096)) / 365,
  );
  const doy = doe - (365 * yoe + Math.floor(yoe / 4) - Math.floor(yoe / 100));
  const mp = Math.floor((5 * doy + 2) / 153);
  const month = mp < 10 ? mp + 3 : mp - 9;
  const dayOfMonth = doy - Math.floor((153 * mp + 2) / 5) + 1;
  return { year: yoe + era * 400 + (month <= 2 ? 1 : 0), month, dayOfMonth };
}

/** Milliseconds since 1970 as ISO 8601 in UTC: "2024-01-11T00:00:00.000Z". */
export function isoText(wallMs: number): string {
  const ms = Math.floor(wallMs);
  const { dayOfMonth, month, year } = civilDate(Math.floor(ms / 86_400_000));
  const inDay = ((ms % 86_400_000) + 86_400_000) % 86_400_000;
  const digits = (value: number, count = 2): string => String(value).padStart(count, "0");
  const [hours, minutes, seconds] = [3_600_000, 60_000, 1_000].map((unit) =>
    digits(Math.floor(inDay / unit) % (unit === 3_600_000 ? 24 : 60)),
  );
  const date = `${digits(year, 4)}-${digits(month)}-${digits(dayOfMonth)}`;
  return `${date}T${hours}:${minutes}:${seconds}.${digits(inDay % 1_000, 3)}Z`;
}
