import type { Static } from 'typebox';
import {
  integer,
  integerOrDigits,
  list,
  mapOf,
  nullable,
  object,
  oneOf,
  openObject,
  option,
  type SectionType,
  section,
  string,
} from '../config/index.ts';

const text = (description: string) => option(nullable(string()), { description, default: null });
const connections = (description: string) =>
  option(nullable(integer({ minimum: 0 })), { description, default: null, unit: 'connections' });

const args = openObject({
  database: text('SQLite: the path of the file, or `:memory:`. PostgreSQL: another name for `dbname`.'),
  user: text('PostgreSQL: the user to connect as.'),
  password: option(nullable(string()), {
    description: 'PostgreSQL: the password of the user.',
    default: null,
    secret: true,
  }),
  dbname: text('PostgreSQL: the name of the database.'),
  host: text('PostgreSQL: the host, or the directory of its Unix socket.'),
  port: option(nullable(integerOrDigits({ minimum: 1, maximum: 65535 })), {
    description: 'PostgreSQL: the port.',
    default: null,
    unit: 'port number',
  }),
  cp_min: connections('PostgreSQL: the minimum number of open connections.'),
  cp_max: connections('PostgreSQL: the maximum number of open connections.'),
});

const entryMembers = {
  name: option(oneOf('sqlite3', 'psycopg2'), {
    description: 'The kind of database: `sqlite3` for SQLite, `psycopg2` for PostgreSQL.',
    required: true,
  }),
  txn_limit: option(integer({ minimum: 0 }), {
    description:
      'The number of transactions after which a connection is closed and opened again. 0 keeps it open.',
    default: 0,
    unit: 'transactions',
  }),
  args: option(args, {
    description:
      'The connection parameters. Options that are not listed here are passed to the database driver.',
  }),
};

const entry = object(entryMembers);
const namedEntry = object({
  ...entryMembers,
  data_stores: option(list(oneOf('state', 'main'), { minItems: 1 }), {
    description:
      'What is stored in this database: `state` is the history of room states (the tables `state_groups`, `state_group_edges`, `state_groups_state` and, in `number_bounds`, the bound of their ids), `main` is everything else.',
    required: true,
  }),
});

export type DatabaseEntry = Static<typeof entry>;

/** Options for the databases of the server. */
export const databaseSection = section({
  title: 'Databases',
  description: 'Where the server stores its data. Give `database` or `databases`, not both.',
  options: {
    database: option(nullable(entry), {
      description:
        'The only database, for all data. When neither this nor `databases` is given, it is the SQLite file `homeserver.db` in the working directory.',
      default: null,
    }),
    databases: option(mapOf(namedEntry), {
      description:
        'Several PostgreSQL databases under names of your choice. Each part of the data is stored in exactly one of them.',
      default: {},
    }),
  },
  rules: [
    ({ database, databases }, view) => {
      const names = Object.keys(databases);
      if (database !== null && names.length > 0) {
        view.error('databases', 'cannot be given together with database');
      }
      if (database?.name === 'sqlite3' && database.args.database === null) {
        view.error('database.args.database', 'must be given: the path of the SQLite file');
      }
      for (const name of names) {
        if (databases[name]?.name !== 'sqlite3') continue;
        view.error(
          `databases.${name}.name`,
          'several databases are possible with PostgreSQL (psycopg2) only',
        );
      }
    },
    ({ databases }, view) => {
      const stores = Object.values(databases).flatMap(({ data_stores }) => data_stores);
      if (stores.length === 0) return;
      for (const store of ['main', 'state'] as const) {
        const count = stores.filter((name) => name === store).length;
        if (count !== 1) {
          view.error(
            'databases',
            `the data store ${store} must be in exactly one database, found in ${count}`,
          );
        }
      }
    },
  ],
});

export type DatabaseConfig = SectionType<typeof databaseSection>;

/** Returns the database for each part of the data; both are the same unless `databases` says otherwise. */
export function dataStoreEntries({ database, databases }: DatabaseConfig): {
  readonly main: DatabaseEntry;
  readonly state: DatabaseEntry;
} {
  const only = database ?? defaultEntry;
  const entries = Object.values(databases);
  return {
    main: entries.find(({ data_stores }) => data_stores.includes('main')) ?? only,
    state: entries.find(({ data_stores }) => data_stores.includes('state')) ?? only,
  };
}

const defaultEntry: DatabaseEntry = {
  name: 'sqlite3',
  txn_limit: 0,
  args: {
    database: 'homeserver.db',
    user: null,
    password: null,
    dbname: null,
    host: null,
    port: null,
    cp_min: null,
    cp_max: null,
  },
};
