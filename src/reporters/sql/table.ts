/** Table of points, whose name is inserted into statements unescaped. */

import { ReporterError } from "../settings.ts";

export const TABLE = {
  kind: "text",
  about: "its table, made if it is not there",
  default: "hyperscale_points",
} as const;

export function tableName(reporter: string, table: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(table)) return table;
  throw new ReporterError(`report ${reporter}: table is a name of small letters, digits and _`);
}
