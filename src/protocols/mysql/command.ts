/** What is asked of a MySQL server, and what it answers. */

import type { SqlCommand, SqlStatement } from "../target/sql.ts";

export interface Statement extends SqlStatement {
  /** By the binary protocol: each connection prepares the text once. */
  readonly prepared: boolean;
}

export type MysqlCommand = SqlCommand<Statement>;

export interface Rows {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows that were found or changed. */
  readonly rowCount: number;
  /** What AUTO_INCREMENT gave to the first row that was inserted; 0 where nothing was. */
  readonly insertId: number;
}
