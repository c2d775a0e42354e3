import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type HearthConfiguration, sections } from '../../../src/configuration.ts';
import { createHomeserver, type Homeserver } from '../../../src/homeserver.ts';
import { type Clock, systemClock } from '../../../src/kernel/clock.ts';
import type { OptionPlaces, Section } from '../../../src/kernel/config/index.ts';
import type { DatabaseOptions } from '../../../src/kernel/database/index.ts';
import { type Logger, silentLogger } from '../../../src/kernel/observability/index.ts';
import type { Resolver } from '../../../src/kernel/outbound/index.ts';
import { type Randomness, systemRandomness } from '../../../src/kernel/randomness.ts';
import { migrations } from '../../../src/slices.ts';
import { makeTestDatabase, portVariable } from '../databases/databases.ts';
import { startPostgres } from '../databases/postgres-server.ts';
import { type Overrides, sectionDefaults } from '../inputs/section-defaults.ts';
import { type ApiAnswer, type ApiRequest, callApi } from './api-call.ts';

export type { ApiAnswer, ApiRequest } from './api-call.ts';

/** Options of any section, by the section's name. */
export type ConfigurationOverrides = {
  readonly [Name in keyof HearthConfiguration]?: Overrides<HearthConfiguration[Name]>;
};

export interface TestServerOptions {
  readonly database: DatabaseOptions['kind'];
  /**
   * Replaces the defaults of test servers, which are the name `test`, open registration, huge rate limits and quick
   * password hashes.
   */
  readonly config?: ConfigurationOverrides;
  /**
   * The configuration file and the line of each given option, which the admin API shows. When this is absent, the admin
   * API shows all options as defaults.
   */
  readonly origins?: OptionPlaces;
  readonly clock?: Clock;
  readonly randomness?: Randomness;
  readonly log?: Logger;
  /** Replaces the resolver of the operating system. */
  readonly resolver?: Resolver;
  /** PEM of the certificate authorities to trust instead of the operating system's own. */
  readonly authorities?: readonly string[];
  /** Called with the listening addresses after each start. */
  readonly listening?: (addresses: readonly string[]) => void;
}

/** The ids and the access token of a logged-in user. */
export interface TestUser {
  readonly userId: string;
  readonly deviceId: string;
  readonly token: string;
}

export interface TestServer {
  readonly baseUrl: string;
  readonly homeserver: Homeserver;
  /** The options that its database was opened with. */
  readonly databaseOptions: DatabaseOptions;
  /**
   * Calls the server. Fails the test when the response does not match the specification's schema of the
   * operation.
   */
  api(method: string, path: string, request?: ApiRequest): Promise<ApiAnswer>;
  /** Registers a user. */
  register(username: string, password?: string): Promise<TestUser>;
  /** Restarts the server on the same database, at another port. */
  restart(): Promise<void>;
  /** Stops the server and removes its database. */
  stop(): Promise<void>;
}

/** Runs a whole homeserver on a free port of the loopback address. */
export async function startTestServer(options: TestServerOptions): Promise<TestServer> {
  const postgres = await startPostgresIfNeeded(options);
  const testDatabase = await makeTestDatabase(options.database, migrations);
  const mediaFolder = mkdtempSync(join(tmpdir(), 'hearth-media-'));
  const start = async () => {
    const environment = {
      configuration: testConfiguration({
        ...options.config,
        media: { media_store_path: mediaFolder, ...options.config?.media },
      }),
      clock: options.clock ?? systemClock,
      randomness: options.randomness ?? systemRandomness,
      log: options.log ?? silentLogger,
      databaseOptions: testDatabase.options,
      ...(options.resolver && { resolver: options.resolver }),
      ...(options.authorities && { authorities: options.authorities }),
    };
    const homeserver = createHomeserver(environment, options.origins);
    const { addresses } = await homeserver.start();
    options.listening?.(addresses);
    return { homeserver, baseUrl: addresses[0]! };
  };
  const discard = async () => {
    await testDatabase.remove();
    rmSync(mediaFolder, { recursive: true, force: true });
    await postgres?.stop();
  };
  let running = await start().catch(async (error: unknown) => {
    await discard();
    throw error;
  });
  const api: TestServer['api'] = (method, path, request) => callApi(running.baseUrl, method, path, request);
  return {
    get baseUrl() {
      return running.baseUrl;
    },
    get homeserver() {
      return running.homeserver;
    },
    databaseOptions: testDatabase.options,
    api,
    register: (username, password = 'correct horse') => register(api, username, password),
    async restart() {
      await running.homeserver.stop();
      running = await start();
    },
    async stop() {
      await running.homeserver.stop();
      await discard();
    },
  };
}

/** Starts PostgreSQL, unless `npm test` has started one already. */
async function startPostgresIfNeeded({ database }: TestServerOptions) {
  if (database !== 'postgres' || process.env[portVariable]) return undefined;
  const server = await startPostgres();
  process.env[portVariable] = String(server.port);
  return {
    async stop() {
      delete process.env[portVariable];
      await server.stop();
    },
  };
}

/** The signing key of every test server. */
const signingKey = join(import.meta.dirname, '..', '..', 'fixtures', 'test.signing.key');

/** The values of the sections of test servers that differ from the defaults. */
const testDefaults: Readonly<Record<string, object>> = {
  server: { server_name: 'test' },
  http: {
    listeners: [
      {
        port: 0,
        type: 'http',
        bind_addresses: ['127.0.0.1'],
        resources: [{ names: ['client', 'federation'] }],
      },
    ],
  },
  accounts: {
    enable_registration: true,
    enable_registration_without_verification: true,
    registration_shared_secret: 'shared secret',
    bcrypt_rounds: 4,
  },
  // Tests repeat initial syncs and expect each one to be computed.
  caches: { caches: { sync_response_cache_duration: 0 } },
  federationClient: { signing_key_path: signingKey },
  rateLimits: withHugeBuckets(sectionDefaults(sections.rateLimits)),
};

/** The values of the sections that a test does not change. */
const unchanged = new Map<string, object>();

/** Returns a complete configuration for tests. */
export function testConfiguration(overrides: ConfigurationOverrides = {}): HearthConfiguration {
  const bySection = overrides as Record<string, object | undefined>;
  const values = Object.entries(sections).map(([name, section]) => {
    const read = () =>
      sectionDefaults(section as Section<object>, { ...testDefaults[name], ...bySection[name] });
    if (bySection[name] !== undefined) return [name, read()];
    const known = unchanged.get(name) ?? read();
    unchanged.set(name, known);
    return [name, known];
  });
  return Object.fromEntries(values) as HearthConfiguration;
}

/** Replaces every leaky bucket by one that no test fills by chance. */
function withHugeBuckets(limits: object): object {
  const entries = Object.entries(limits).map(([name, limit]) => {
    if (typeof limit !== 'object' || limit === null) return [name, limit];
    if (name === 'rc_federation') return [name, { ...limit, sleep_limit: 1e6, reject_limit: 1e6 }];
    return [name, 'per_second' in limit ? { per_second: 1e6, burst_count: 1e6 } : withHugeBuckets(limit)];
  });
  return Object.fromEntries(entries);
}

async function register(api: TestServer['api'], username: string, password: string): Promise<TestUser> {
  const body = { username, password, auth: { type: 'm.login.dummy' } };
  const answer = await api('POST', '/_matrix/client/v3/register', { body });
  assert.equal(answer.status, 200, answer.raw);
  return {
    userId: String(answer.body['user_id']),
    deviceId: String(answer.body['device_id']),
    token: String(answer.body['access_token']),
  };
}
