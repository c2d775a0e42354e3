import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import type { DatabaseEntry } from './config.ts';
import type { DatabaseOptions } from './open.ts';
import type { PostgresOptions } from './postgres/options.ts';

/**
 * Default numbers of connections: the defaults of Twisted's connection pool, whose parameters gave `cp_min` and
 * `cp_max` their names.
 */
const defaultConnections = { min: 3, max: 5 };

/** Returns the settings for opening the configured database. Reads the certificate files. */
export function databaseOptions({ name, txn_limit, args }: DatabaseEntry): DatabaseOptions {
  if (name === 'sqlite3') return { kind: 'sqlite', path: args.database ?? 'homeserver.db' };
  const given: Record<string, unknown> = args;
  const max = args.cp_max ?? Math.max(defaultConnections.max, args.cp_min ?? 0);
  const ssl = sslOptions(given);
  const database = args.dbname ?? args.database;
  const timeout = seconds(given['connect_timeout']);
  const options: PostgresOptions = {
    kind: 'postgres',
    connections: { min: Math.min(args.cp_min ?? defaultConnections.min, max), max: Math.max(1, max) },
    transactionsPerConnection: txn_limit,
    ...(args.host !== null && { host: args.host }),
    ...(args.port !== null && { port: args.port }),
    ...(args.user !== null && { user: args.user }),
    ...(args.password !== null && { password: args.password }),
    ...(database !== null && { database }),
    ...(ssl !== undefined && { ssl }),
    ...(ssl && { toolEnvironment: sslEnvironment(given) }),
    ...(timeout !== undefined && { connectTimeout: timeout * 1_000 }),
    ...(typeof given['application_name'] === 'string' && { applicationName: given['application_name'] }),
  };
  return options;
}

/**
 * Returns the TLS settings for the option `sslmode` of libpq (its manual, "SSL Support"): `false` for no TLS,
 * `undefined` when the option is absent. `allow` and `prefer` connect without TLS, because they provide no security in
 * any case.
 */
function sslOptions(given: Readonly<Record<string, unknown>>): false | ConnectionOptions | undefined {
  const mode = given['sslmode'];
  if (mode === undefined || mode === null) return undefined;
  if (mode === 'disable' || mode === 'allow' || mode === 'prefer') return false;
  if (mode !== 'require' && mode !== 'verify-ca' && mode !== 'verify-full') {
    throw new Error(`database.args.sslmode: unknown mode ${JSON.stringify(mode)}`);
  }
  const ca = contentOf(given['sslrootcert']);
  const cert = contentOf(given['sslcert']);
  const key = contentOf(given['sslkey']);
  const options: ConnectionOptions = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  if (mode === 'require' && !ca) return { ...options, rejectUnauthorized: false };
  return mode === 'verify-full' ? options : { ...options, checkServerIdentity: () => undefined };
}

/**
 * Returns the environment variables with the TLS settings for PostgreSQL's command line tools. Without a file of
 * certificates, the tools do not check the server, because unlike the driver they do not know the certificates of the
 * system.
 */
function sslEnvironment(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const names = { PGSSLROOTCERT: 'sslrootcert', PGSSLCERT: 'sslcert', PGSSLKEY: 'sslkey' };
  const files = Object.entries(names).flatMap(([variable, name]) => {
    const path = given[name];
    return typeof path === 'string' && path !== '' ? [[variable, path] as const] : [];
  });
  const environment = Object.fromEntries(files);
  const mode = environment['PGSSLROOTCERT'] === undefined ? 'require' : String(given['sslmode']);
  return { PGSSLMODE: mode, ...environment };
}

const contentOf = (path: unknown) =>
  typeof path === 'string' && path !== '' ? readFileSync(path) : undefined;

function seconds(value: unknown): number | undefined {
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return number > 0 ? number : undefined;
}
