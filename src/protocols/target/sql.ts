/** Shared parts of the SQL protocols: statements and transactions as calls, and how they run. */

import { DescribedCall } from "./described-call.ts";
import type { Target } from "./target.ts";

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface SqlCommand<Statement extends SqlStatement> {
  readonly statements: readonly Statement[];
  /** All or nothing. */
  readonly transaction: boolean;
}

type SqlCall<Statement extends SqlStatement, Value> = DescribedCall<SqlCommand<Statement>, Value>;

const STATEMENTS_MAX = 1_000;
const TITLE_WORDS = 3;

/** One statement; its first words are the title by default. */
export function statementCall<Statement extends SqlStatement, Result>(
  target: Target<SqlCommand<Statement>>,
  statement: Statement,
  title = titleOf(statement.text),
): SqlCall<Statement, Result> {
  return new DescribedCall(target, {
    command: { statements: [statement], transaction: false },
    title,
    shown: statement.text,
    decode: (results) => (results as readonly [Result])[0],
  });
}

/** Several statements in one measured call from BEGIN to COMMIT. */
export function transactionCall<Statement extends SqlStatement, Result>(
  target: Target<SqlCommand<Statement>>,
  calls: readonly SqlCall<Statement, Result>[],
): SqlCall<Statement, readonly Result[]> {
  if (calls.length === 0 || calls.length > STATEMENTS_MAX)
    throw new RangeError(`a transaction has 1 to ${STATEMENTS_MAX} statements`);
  if (calls.some(({ command }) => command.transaction))
    throw new TypeError("a transaction takes statements, no transactions");
  const statements = calls.flatMap(({ command }) => command.statements);
  return new DescribedCall(target, {
    command: { statements, transaction: true },
    title: "transaction",
    shown: statements.map(({ text }) => text).join("; "),
    decode: (results) => results as readonly Result[],
  });
}

/** The smallest statement. */
export function pingCall<Statement extends SqlStatement>(
  target: Target<SqlCommand<Statement>>,
  statement: Statement,
): SqlCall<Statement, string> {
  return new DescribedCall(target, {
    command: { statements: [statement], transaction: false },
    title: statement.text,
    decode: () => "answers",
  });
}

/** Runs commands on one connection. */
interface SqlSession<Statement, Result> {
  run(statement: Statement): Promise<Result>;
  begin(): Promise<unknown>;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  /** The server reported an error and waits for the end of the transaction. */
  refused(error: unknown): boolean;
}

export async function runStatements<Statement extends SqlStatement, Result>(
  { statements, transaction }: SqlCommand<Statement>,
  session: SqlSession<Statement, Result>,
): Promise<readonly Result[]> {
  const [only] = statements;
  if (!transaction && only !== undefined) return [await session.run(only)];
  const results: Result[] = [];
  await session.begin();
  try {
    for (const statement of statements) results.push(await session.run(statement));
  } catch (error) {
    if (session.refused(error)) await session.rollback();
    throw error;
  }
  await session.commit();
  return results;
}

/** Number of statements sent. */
export function statementsSent({ statements, transaction }: SqlCommand<SqlStatement>): number {
  return statements.length + (transaction ? 2 : 0);
}

/** `example` shows a valid statement. */
export function checkedText(text: unknown, example: string): string {
  if (typeof text === "string" && text.trim() !== "") return text;
  throw new TypeError(`a statement is a text: ${example}`);
}

/** "select * from": without the parts that vary. */
function titleOf(text: string): string {
  return text.trim().split(/\s+/, TITLE_WORDS).join(" ").toLowerCase();
}
