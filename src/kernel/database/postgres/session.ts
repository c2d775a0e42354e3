import type { ClientBase, QueryConfig } from 'pg';
import { numberPlaceholders } from '../portable-sql.ts';
import type { Outcome, Row } from '../queries.ts';
import { typedError } from './errors.ts';
import type { StatementNames } from './statement-names.ts';
import { bindable } from './values.ts';

/** Commands whose outcome has the number of written rows. */
const writing = ['INSERT', 'UPDATE', 'DELETE', 'MERGE'];

/**
 * Runs statements on one connection. Statements may be sent without waiting: the connection answers them in
 * order.
 */
export class Session {
  readonly #client: ClientBase;
  readonly #names: StatementNames;

  constructor(client: ClientBase, names: StatementNames) {
    this.#client = client;
    this.#names = names;
  }

  /** Runs one statement. */
  async run(sql: string, parameters: readonly unknown[]): Promise<Outcome> {
    const text = numberPlaceholders(sql);
    const name = parameters.length > 0 ? this.#names.nameFor(text) : undefined;
    const query: QueryConfig = { text, values: parameters.map(bindable) };
    if (name) query.name = name;
    try {
      const { command, rowCount, rows } = await this.#client.query<Row>(query);
      return writing.includes(command) ? { rows, changes: rowCount ?? 0 } : { rows };
    } catch (error) {
      throw typedError(error);
    }
  }

  /**
   * Runs one or several statements like BEGIN and COMMIT. Resolves with the command that the server reports for a
   * single statement.
   */
  async control(sql: string): Promise<string> {
    try {
      return (await this.#client.query(sql)).command;
    } catch (error) {
      throw typedError(error);
    }
  }
}
