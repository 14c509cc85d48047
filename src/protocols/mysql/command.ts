/** What is asked of a MySQL server, and what it answers. */

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** By the binary protocol: each connection prepares the text once. */
  readonly prepared: boolean;
}

export interface MysqlCommand {
  readonly statements: readonly Statement[];
  /** All of them or none. */
  readonly transaction: boolean;
}

export interface Rows {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows that were found or changed. */
  readonly rowCount: number;
  /** What AUTO_INCREMENT gave to the first row that was inserted; 0 where nothing was. */
  readonly insertId: number;
}
