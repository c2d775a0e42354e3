import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { type DatabaseEntry, databaseSection, dataStoreEntries } from './config.ts';
import { databaseOptions } from './options.ts';

const nothing = {
  database: null,
  user: null,
  password: null,
  dbname: null,
  host: null,
  port: null,
  cp_min: null,
  cp_max: null,
};

const postgres = (args: object, txn_limit = 0): DatabaseEntry => ({
  name: 'psycopg2',
  txn_limit,
  args: { ...nothing, ...args },
});

test('databaseOptions returns the settings of a SQLite file [option: database.name, database.args.database]', () => {
  const entry: DatabaseEntry = {
    name: 'sqlite3',
    txn_limit: 0,
    args: { ...nothing, database: '/data/home.db' },
  };
  assert.deepEqual(databaseOptions(entry), { kind: 'sqlite', path: '/data/home.db' });
});

test('databaseOptions returns the settings of a PostgreSQL server, including options of the driver [option: database.txn_limit, database.args.user, database.args.password, database.args.dbname, database.args.host, database.args.port, database.args.cp_min, database.args.cp_max]', () => {
  const args = {
    user: 'hearth',
    password: 'secret',
    dbname: 'chat',
    host: 'db.example',
    port: 5433,
    cp_min: 2,
    cp_max: 20,
    connect_timeout: 3,
    application_name: 'chat',
    sslmode: 'disable',
  };
  assert.deepEqual(databaseOptions(postgres(args, 1_000)), {
    kind: 'postgres',
    user: 'hearth',
    password: 'secret',
    database: 'chat',
    host: 'db.example',
    port: 5433,
    connections: { min: 2, max: 20 },
    transactionsPerConnection: 1_000,
    connectTimeout: 3_000,
    applicationName: 'chat',
    ssl: false,
  });
});

test('databaseOptions returns the settings of the entry of databases that contains all data stores [option: databases.*.name, databases.*.txn_limit, databases.*.args.database, databases.*.args.user, databases.*.args.password, databases.*.args.dbname, databases.*.args.host, databases.*.args.port, databases.*.args.cp_min, databases.*.args.cp_max]', () => {
  const args = { user: 'u', password: 'p', host: 'h', port: 5433, cp_min: 2, cp_max: 4 };
  for (const name of ['database', 'dbname']) {
    const everything = {
      ...postgres({ ...args, [name]: 'chat' }, 7),
      data_stores: ['main' as const, 'state' as const],
    };
    const { main } = dataStoreEntries(sectionDefaults(databaseSection, { databases: { everything } }));
    assert.deepEqual(databaseOptions(main), {
      kind: 'postgres',
      user: 'u',
      password: 'p',
      database: 'chat',
      host: 'h',
      port: 5433,
      connections: { min: 2, max: 4 },
      transactionsPerConnection: 7,
    });
  }
});

test('databaseOptions leaves host, user and database to the driver when they are not given', () => {
  assert.deepEqual(databaseOptions(postgres({})), {
    kind: 'postgres',
    connections: { min: 3, max: 5 },
    transactionsPerConnection: 0,
  });
});

test('databaseOptions never sets a minimum of connections above the maximum', () => {
  const connectionsFor = (args: object) => {
    const options = databaseOptions(postgres(args));
    return options.kind === 'postgres' ? options.connections : undefined;
  };
  assert.deepEqual(connectionsFor({ cp_min: 8 }), { min: 8, max: 8 });
  assert.deepEqual(connectionsFor({ cp_max: 1 }), { min: 1, max: 1 });
});

test('databaseOptions translates the TLS modes of libpq', () => {
  const sslFor = (args: object) => {
    const options = databaseOptions(postgres(args));
    return options.kind === 'postgres' ? options.ssl : undefined;
  };
  assert.equal(sslFor({ sslmode: 'prefer' }), false);
  assert.deepEqual(sslFor({ sslmode: 'require' }), { rejectUnauthorized: false });
  assert.deepEqual(sslFor({ sslmode: 'verify-full' }), {});
  const ca = sslFor({ sslmode: 'verify-ca', sslrootcert: import.meta.filename });
  assert.ok(typeof ca === 'object' && ca.ca && ca.checkServerIdentity?.('any', {} as never) === undefined);
  assert.throws(() => sslFor({ sslmode: 'perhaps' }), /sslmode: unknown mode "perhaps"/);
});

test('databaseOptions returns the TLS settings as environment variables for the tools of PostgreSQL', () => {
  const environmentFor = (args: object) => {
    const options = databaseOptions(postgres(args));
    return options.kind === 'postgres' ? options.toolEnvironment : undefined;
  };
  const path = import.meta.filename;
  assert.equal(environmentFor({ sslmode: 'prefer' }), undefined);
  assert.deepEqual(environmentFor({ sslmode: 'verify-full' }), { PGSSLMODE: 'require' });
  const args = { sslmode: 'verify-full', sslrootcert: path, sslcert: path, sslkey: path };
  assert.deepEqual(environmentFor(args), {
    PGSSLMODE: 'verify-full',
    PGSSLROOTCERT: path,
    PGSSLCERT: path,
    PGSSLKEY: path,
  });
});
