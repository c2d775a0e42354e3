import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseChecks } from '../../src/composition/database-checks.ts';
import { createHomeserver, type Homeserver } from '../../src/homeserver.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { checkDatabase, openDatabase } from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { stateGroupTables } from '../../src/room-engine/index.ts';
import { migrations } from '../../src/slices.ts';
import { openContents } from '../support/databases/database-contents.ts';
import { databaseOption } from '../support/databases/database-option.ts';
import { makeTestDatabase, portVariable, type TestDatabase } from '../support/databases/databases.ts';
import { startPostgres } from '../support/databases/postgres-server.ts';
import { type ApiAnswer, callApi } from '../support/servers/api-call.ts';
import { testConfiguration } from '../support/servers/server.ts';
import type { Postgres } from './login-role.ts';

/** A running server on one or two databases of PostgreSQL. */
export class ServerOnDatabases {
  readonly url: string;
  readonly #homeserver: Homeserver;

  constructor(url: string, homeserver: Homeserver) {
    this.url = url;
    this.#homeserver = homeserver;
  }

  /** Sends a request. @param path below `/_matrix/client/v3/` */
  api(method: string, path: string, token: string | undefined, body?: object): Promise<ApiAnswer> {
    const request = { ...(token && { token }), ...(body && { body }) };
    return callApi(this.url, method, `/_matrix/client/v3/${path}`, request);
  }

  /** Registers a user. @returns an access token */
  async register(username: string): Promise<string> {
    const body = { username, password: 'correct horse', auth: { type: 'm.login.dummy' } };
    return String((await this.api('POST', 'register', undefined, body)).body['access_token']);
  }

  /** Creates a room. @returns its id, encoded for a path */
  async createRoom(token: string): Promise<string> {
    const { status, body, raw } = await this.api('POST', 'createRoom', token, { name: 'Room' });
    assert.equal(status, 200, raw);
    return encodeURIComponent(String(body['room_id']));
  }

  setTopic(token: string, room: string, topic: string): Promise<ApiAnswer> {
    return this.api('PUT', `rooms/${room}/state/m.room.topic`, token, { topic });
  }

  stop(): Promise<void> {
    return this.#homeserver.stop();
  }
}

/** Empty and migrated databases of PostgreSQL for one test file, and servers that use one or two of them. */
export class PostgresDatabases {
  /** A folder for configuration files. */
  readonly folder = mkdtempSync(join(tmpdir(), 'hearth-two-'));
  readonly #databases: TestDatabase[] = [];
  readonly #ownPostgres: Awaited<ReturnType<typeof startPostgres>> | undefined;
  #running: ServerOnDatabases | undefined;

  private constructor(ownPostgres?: Awaited<ReturnType<typeof startPostgres>>) {
    this.#ownPostgres = ownPostgres;
  }

  static async open(): Promise<PostgresDatabases> {
    if (process.env[portVariable]) return new PostgresDatabases();
    const ownPostgres = await startPostgres();
    process.env[portVariable] = String(ownPostgres.port);
    return new PostgresDatabases(ownPostgres);
  }

  async empty(): Promise<Postgres> {
    const database = await makeTestDatabase('postgres');
    this.#databases.push(database);
    return database.options as Postgres;
  }

  async migrated(): Promise<Postgres> {
    const database = await makeTestDatabase('postgres', migrations);
    this.#databases.push(database);
    return database.options as Postgres;
  }

  /** Starts a server. @param database options as `twoDatabases` and `oneDatabase` return them */
  async start(database: object): Promise<ServerOnDatabases> {
    const homeserver = createHomeserver({
      configuration: testConfiguration({ database } as Parameters<typeof testConfiguration>[0]),
      clock: systemClock,
      randomness: systemRandomness,
      log: silentLogger,
    });
    const { addresses } = await homeserver.start();
    this.#running = new ServerOnDatabases(addresses[0]!, homeserver);
    return this.#running;
  }

  /** Stops the server that was started last, if it runs. */
  async stopServer(): Promise<void> {
    await this.#running?.stop();
  }

  async close(): Promise<void> {
    await this.stopServer();
    for (const database of this.#databases) await database.remove();
    rmSync(this.folder, { recursive: true, force: true });
    if (this.#ownPostgres) delete process.env[portVariable];
    await this.#ownPostgres?.stop();
  }
}

/** Returns an entry of the option `databases`, without its data stores. */
export const databaseEntry = (options: Postgres) => ({ txn_limit: 0, ...databaseOption(options) });

/** Returns the options of a server with one database. */
export const oneDatabase = (options: Postgres) => ({ database: databaseEntry(options), databases: {} });

/** Returns the options of a server with a database for each data store. */
export const twoDatabases = (main: Postgres, state: Postgres) => ({
  database: null,
  databases: {
    first: { ...databaseEntry(main), data_stores: ['main'] },
    second: { ...databaseEntry(state), data_stores: ['state'] },
  },
});

/** Counts the rows of each table of the store `state`. */
export async function countStateRows(options: Postgres): Promise<number[]> {
  const contents = await openContents(options);
  const counts: number[] = [];
  for (const table of stateGroupTables) counts.push((await contents.rows(table)).length);
  await contents.close();
  return counts;
}

/** Returns the problems that `hearth database check` finds. */
export async function problems(main: Postgres, state: Postgres) {
  const stores = {
    main: await openDatabase(main, { log: silentLogger }),
    state: await openDatabase(state, { log: silentLogger }),
  };
  const results = await checkDatabase(stores, databaseChecks('postgres'), false);
  await stores.main.close();
  await stores.state.close();
  return results.filter(({ outcome }) => outcome !== 'none');
}
