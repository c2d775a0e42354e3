import assert from 'node:assert/strict';
import {
  type AccountExtensions,
  type AccountsSlice,
  type AccountsSliceOptions,
  accountMigrations,
  availabilityRate,
  challengeRate,
  Housekeeping,
  openAccounts,
} from '../../../src/accounts/index.ts';
import { deviceMigrations } from '../../../src/devices/index.ts';
import type { CacheRegistry } from '../../../src/kernel/caches/index.ts';
import type { Database, Migration } from '../../../src/kernel/database/index.ts';
import { createHttpServer, type HttpServer, type Route } from '../../../src/kernel/http/index.ts';
import { Jobs } from '../../../src/kernel/jobs/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import type { OutboundHttp } from '../../../src/kernel/outbound/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import { RateLimiter } from '../../../src/kernel/rate-limits/index.ts';
import { LocalStreams, streamMigrations } from '../../../src/kernel/streams/index.ts';
import type { ServerName } from '../../../src/protocol/index.ts';
import { type ManualClock, manualClock } from '../clocks/manual-clock.ts';
import type { OpenDatabase } from '../databases/databases.ts';
import { adminRegistrationBody, adminRegistrationPath } from '../users/register-admin.ts';
import { callApi } from './api-call.ts';
import { plainCaches } from './caches.ts';

/** Milliseconds. */
export const minute = 60_000;

/** Options of a server with open registration and quick password hashes. */
export const testAccountOptions: AccountsSliceOptions = {
  server_name: 'test' as ServerName,
  enable_registration: true,
  enable_registration_without_verification: true,
  registrations_require_3pid: [],
  disable_msisdn_registration: false,
  registration_requires_token: false,
  enable_registration_captcha: false,
  user_consent: null,
  form_secret: null,
  login_via_existing_session: { enabled: false, require_ui_auth: true, token_timeout: 5 * minute },
  track_puppeted_user_ips: false,
  recaptcha_public_key: null,
  recaptcha_private_key: null,
  recaptcha_siteverify_api: 'https://captcha.example/recaptcha/api/siteverify',
  public_baseurl: 'https://test.example/',
  registration_shared_secret: 'shared secret',
  bcrypt_rounds: 4,
  allow_guest_access: true,
  inhibit_user_in_use_error: false,
  allow_underscore_prefixed_registration: false,
  session_lifetime: Number.POSITIVE_INFINITY,
  refreshable_access_token_lifetime: 5 * minute,
  refresh_token_lifetime: Number.POSITIVE_INFINITY,
  nonrefreshable_access_token_lifetime: Number.POSITIVE_INFINITY,
  ui_auth: { session_timeout: 0 },
  password_config: {
    enabled: true,
    localdb_enabled: true,
    pepper: null,
    policy: {
      enabled: false,
      minimum_length: 0,
      require_digit: false,
      require_symbol: false,
      require_lowercase: false,
      require_uppercase: false,
    },
  },
  user_types: { default_user_type: null, extra_user_types: [] },
  user_ips_max_age: 28 * 24 * 60 * minute,
  delete_stale_devices_after: null,
};

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

export interface TestEnvironment {
  readonly database: Database;
  readonly streams: LocalStreams;
  readonly clock: ManualClock;
  readonly caches: CacheRegistry;
}

export interface AccountsServerOptions {
  readonly options?: Partial<AccountsSliceOptions>;
  readonly extensions?: (environment: TestEnvironment) => AccountExtensions;
  readonly migrations?: readonly Migration[];
  readonly routes?: (
    slice: AccountsSlice,
    environment: TestEnvironment,
  ) => readonly Route[] | Promise<readonly Route[]>;
  readonly tokenKey?: Uint8Array;
  /** The HTTP client for requests to the CAPTCHA service. */
  readonly http?: Pick<OutboundHttp, 'fetch'>;
  /** The burst of all limits of registrations and logins; by default so large that no test reaches it. */
  readonly burst?: number;
}

/** A server with accounts, devices and the routes that a test adds, on a free port. */
export class AccountsServer {
  readonly slice: AccountsSlice;
  readonly database: Database;
  readonly streams: LocalStreams;
  readonly clock: ManualClock;
  readonly #http: HttpServer;
  #base = '';

  private constructor(environment: TestEnvironment, slice: AccountsSlice, http: HttpServer) {
    this.database = environment.database;
    this.streams = environment.streams;
    this.clock = environment.clock;
    this.slice = slice;
    this.#http = http;
  }

  static async start(open: OpenDatabase, setup: AccountsServerOptions = {}): Promise<AccountsServer> {
    const baseMigrations = [...streamMigrations, ...deviceMigrations, ...accountMigrations];
    const database = await open([...baseMigrations, ...(setup.migrations ?? [])]);
    const clock = manualClock();
    const streams = await LocalStreams.open({ database, clock, log: silentLogger });
    const environment = { database, streams, clock, caches: plainCaches(clock) };
    const limiter = (burst_count: number) => new RateLimiter({ per_second: 0.1, burst_count }, clock);
    const burst = setup.burst ?? 1000;
    const slice = openAccounts(
      {
        ...environment,
        randomness: systemRandomness,
        log: silentLogger,
        http: setup.http,
        tokenKey: setup.tokenKey ?? Buffer.from('token key'),
        jobs: new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true }),
        limits: {
          registration: limiter(burst),
          availability: new RateLimiter(
            availabilityRate({ per_second: 0.1, burst_count: setup.burst ?? 0 }),
            clock,
          ),
          tokenValidity: limiter(burst),
          loginTokens: limiter(burst),
          challenges: new RateLimiter(challengeRate({ per_second: 0.1, burst_count: 0 }), clock),
          login: { address: limiter(burst), account: limiter(burst), failedAttempts: limiter(burst) },
        },
      },
      { ...testAccountOptions, ...setup.options },
      setup.extensions?.(environment),
    );
    const http = createHttpServer({
      listeners: [
        {
          name: 'test',
          bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
          resources: [{ names: ['client'], compress: false }],
          forwarded: true,
          requestIdHeader: undefined,
        },
      ],
      routes: [...slice.routes, ...((await setup.routes?.(slice, environment)) ?? [])],
      authenticator: slice.authenticator,
      log: silentLogger,
      clock,
    });
    const server = new AccountsServer(environment, slice, http);
    server.#base = (await http.start())[0]!;
    return server;
  }

  /** Schedules the deletion of expired tokens and stale devices. @param staleDeviceAge milliseconds */
  scheduleHousekeeping(jobs: Jobs, staleDeviceAge: number): void {
    const options = { delete_stale_devices_after: staleDeviceAge };
    new Housekeeping({ ...this.slice, clock: this.clock, jobs }, options);
  }

  async stop(): Promise<void> {
    await this.#http.stop(0);
    await this.slice.lastSeen.flush();
  }

  /** @param path below `/_matrix/client/v3`, unless it begins with another prefix */
  async call(
    method: string,
    path: string,
    {
      token,
      body,
      headers,
    }: { token?: string | undefined; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const url = /^\/(_|\.well-known)/.test(path) ? path : `/_matrix/client/v3${path}`;
    return callApi(this.#base, method, url, {
      body: body === undefined ? undefined : JSON.stringify(body),
      ...(token !== undefined && { token }),
      ...(headers && { headers }),
    });
  }

  /** Requests a page of the server; redirects are not followed. */
  async page(
    path: string,
    init: RequestInit = {},
  ): Promise<{ status: number; headers: Headers; body: string }> {
    const response = await fetch(this.#base + path, { ...init, redirect: 'manual' });
    return { status: response.status, headers: response.headers, body: await response.text() };
  }

  /** Registers a user with the password `password`. */
  async register(username: string, more: Record<string, unknown> = {}): Promise<LoggedInUser> {
    const { status, body } = await this.call('POST', '/register', {
      body: { username, password: 'password', auth: { type: 'm.login.dummy' }, ...more },
    });
    if (status !== 200) throw new Error(`registration failed: ${JSON.stringify(body)}`);
    return toLoggedInUser(body);
  }

  /** Registers an administrator with the password `password`. */
  async registerAdmin(username = 'admin'): Promise<LoggedInUser> {
    const { nonce } = (await this.call('GET', adminRegistrationPath)).body;
    const body = adminRegistrationBody(username, nonce);
    const answer = await this.call('POST', adminRegistrationPath, { body });
    if (answer.status !== 200) throw new Error(`registration failed: ${JSON.stringify(answer.body)}`);
    return toLoggedInUser(answer.body);
  }

  /** Logs a user in with the password `password`. */
  async login(user: string, more: Record<string, unknown> = {}): Promise<LoggedInUser> {
    const { status, body } = await this.call('POST', '/login', { body: { ...passwordLogin(user), ...more } });
    if (status !== 200) throw new Error(`login failed: ${JSON.stringify(body)}`);
    return toLoggedInUser(body);
  }

  /** Sends a request that must be answered with a challenge for the password, and sends it again with the password. */
  async callWithPassword(
    user: LoggedInUser,
    method: string,
    path: string,
    body: Record<string, unknown> = {},
  ): Promise<Answer> {
    const { token } = user;
    const challenge = await this.call(method, path, { token, body });
    assert.equal(challenge.status, 401, JSON.stringify(challenge.body));
    assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.password'] }]);
    const auth = { ...passwordLogin(user.userId), session: challenge.body['session'] };
    return this.call(method, path, { token, body: { ...body, auth } });
  }
}

export interface LoggedInUser {
  readonly userId: string;
  readonly token: string;
  readonly deviceId: string;
  readonly refreshToken: string | undefined;
}

const toLoggedInUser = (body: Answer['body']): LoggedInUser => ({
  userId: body['user_id'] as string,
  token: body['access_token'] as string,
  deviceId: body['device_id'] as string,
  refreshToken: body['refresh_token'] as string | undefined,
});

/** The body of a password login, also the `auth` of a password stage. */
export const passwordLogin = (user: string, password = 'password') => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password,
});
