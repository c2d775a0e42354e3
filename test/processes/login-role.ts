import { readFileSync, writeFileSync } from 'node:fs';
import { Client } from 'pg';
import type { DatabaseOptions } from '../../src/kernel/database/index.ts';
import { connectionTo } from '../support/databases/postgres-server.ts';

export type Postgres = Extract<DatabaseOptions, { kind: 'postgres' }>;

/** A role of PostgreSQL that can log in with its password only, and whose connections are counted. */
export class LoginRole {
  readonly password = 'open sesame';
  readonly #options: Postgres;
  readonly #name: string;
  readonly #client: Client;

  private constructor(options: Postgres, name: string) {
    this.#options = options;
    this.#name = name;
    this.#client = new Client(connectionTo(options.port!));
  }

  static async create(options: Postgres, name: string): Promise<LoginRole> {
    const role = new LoginRole(options, name);
    await role.#client.connect();
    const { rows } = await role.#client.query('show hba_file');
    const file = String(rows[0].hba_file);
    const line = `host all ${name} all scram-sha-256\n`;
    const text = readFileSync(file, 'utf8');
    // Other users of the test run's PostgreSQL log in without a password.
    if (!text.includes(line)) writeFileSync(file, line + text);
    await role.#client.query(`create role ${name} superuser login password '${role.password}'`);
    // Makes the owner of the database also the owner of the tables that the role creates.
    await role.#client.query(`alter role ${name} set role to ${options.user}`);
    await role.#client.query('select pg_reload_conf()');
    return role;
  }

  /** Returns the value of the option `database` for a server that connects as this role. @param more further fields of `args` */
  entry(more: object, txnLimit: number) {
    const { host, port, database } = this.#options;
    const args = { host, port, user: this.#name, password: this.password, dbname: database, ...more };
    return { name: 'psycopg2', txn_limit: txnLimit, args };
  }

  /** Returns the process ids of its connections in PostgreSQL, sorted. */
  async connections(): Promise<number[]> {
    const { rows } = await this.#client.query(
      'select pid from pg_stat_activity where usename = $1 and datname = $2 order by pid',
      [this.#name, this.#options.database],
    );
    return rows.map(({ pid }) => Number(pid));
  }

  /** Returns how many connections the database of this role has had so far. */
  async sessions(): Promise<number> {
    const { rows } = await this.#client.query('select sessions from pg_stat_database where datname = $1', [
      this.#options.database,
    ]);
    return Number(rows[0].sessions);
  }

  async remove(): Promise<void> {
    await this.#client.query(`drop role ${this.#name}`);
    await this.#client.end();
  }
}
