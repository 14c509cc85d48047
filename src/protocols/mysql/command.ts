/** Commands for a MySQL server and the values they return. */

import type { SqlCommand, SqlStatement } from "../target/sql.ts";

export interface Statement extends SqlStatement {
  /** Uses the binary protocol; each connection prepares the text once. */
  readonly prepared: boolean;
}

export type MysqlCommand = SqlCommand<Statement>;

export interface Rows {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows found or changed. */
  readonly rowCount: number;
  /** AUTO_INCREMENT value of the first inserted row; 0 when there is none. */
  readonly insertId: number;
}
