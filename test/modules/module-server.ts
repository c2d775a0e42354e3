import { join } from 'node:path';
import type { EventRules, ModuleApi, SpamChecker } from 'hearth/module';
import { createLogger } from '../../src/kernel/observability/index.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import {
  type ApiAnswer,
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestServerOptions,
  type TestUser,
} from '../support/servers/server.ts';
import { delegatingTo } from './delegating.ts';
import { registrations } from './registering-module.ts';

/** The path of the module of the tests. */
export const moduleFile = join(import.meta.dirname, 'registering-module.ts');

/** The answer of a check that denies, with a field of its own. */
export const denialWithField = {
  errcode: 'ORG_TEST_NO',
  error: 'Not here',
  status: 418,
  extra: { 'org.test.why': 1 },
};

/** A listener of the client-server API and the metrics at a free port. */
export const moduleListener = {
  port: 0,
  type: 'http',
  bind_addresses: ['127.0.0.1'],
  resources: [{ names: ['client', 'metrics'] }],
} satisfies NonNullable<NonNullable<ConfigurationOverrides['http']>['listeners']>[number];

const clientApi = '/_matrix/client/v3';

/** The key of `registrations` for the module of this server. */
const key = 'event callbacks';

/** Options of a server, without the options of its module. */
export type ModuleServerOptions = Pick<TestServerOptions, 'database' | 'config' | 'listening'> & {
  /** Registers further callbacks, besides the callbacks of events. */
  readonly register?: (api: ModuleApi) => void;
};

/** A server whose only module calls the callbacks that a test sets, and the users `@alice:test` and `@bob:test`. */
export class ModuleServer {
  /** The callbacks of the running test that check for spam. */
  checker: SpamChecker = {};
  /** The callbacks of the running test that apply rules to events. */
  rules: EventRules = {};
  readonly clock = skippableClock();
  /** The entries of the log of the server. */
  readonly log: Record<string, unknown>[] = [];
  #server: TestServer | undefined;
  #api: ModuleApi | undefined;
  #config: object | undefined;
  #users: { readonly alice: TestUser; readonly bob: TestUser } | undefined;
  #transactions = 0;

  private constructor() {}

  static async start({ register, config, ...options }: ModuleServerOptions): Promise<ModuleServer> {
    const started = new ModuleServer();
    registrations.set(key, (api, moduleConfig) => {
      started.#api = api;
      started.#config = moduleConfig;
      started.#register(api);
      register?.(api);
    });
    const server = await startTestServer({
      ...options,
      clock: started.clock,
      log: createLogger({
        level: 'info',
        destination: { write: (line) => void started.log.push(JSON.parse(line)) },
      }),
      config: {
        observability: { enable_metrics: true },
        http: { listeners: [moduleListener] },
        modules: { modules: [{ module: moduleFile, config: { key, more: [1] } }] },
        ...config,
      },
    });
    started.#server = server;
    started.#users = { alice: await server.register('alice'), bob: await server.register('bob') };
    return started;
  }

  #register(api: ModuleApi): void {
    const checks = ['checkEvent', 'checkStateEvent', 'mayJoinRoom', 'mayInvite', 'mayCreateRoom'] as const;
    const otherChecks = ['mayCreateAlias', 'mayPublishRoom', 'checkRegistration', 'checkLogin'] as const;
    api.registerSpamChecker(delegatingTo(() => this.checker, [...checks, ...otherChecks], 'allow'));
    api.registerEventRules(
      delegatingTo(() => this.rules, ['checkEventAllowed', 'checkRoomCreation'], 'allow'),
    );
    api.registerEventRules(delegatingTo(() => this.rules, ['onNewEvent']));
  }

  get server(): TestServer {
    return this.#server!;
  }

  /** The API that the server has passed to the module. */
  get api(): ModuleApi {
    return this.#api!;
  }

  /** The configuration that the server has passed to the module. */
  get config(): object {
    return this.#config!;
  }

  get alice(): TestUser {
    return this.#users!.alice;
  }

  get bob(): TestUser {
    return this.#users!.bob;
  }

  /** Removes the callbacks of a test. */
  removeCallbacks(): void {
    this.checker = {};
    this.rules = {};
  }

  stop(): Promise<void> {
    return this.server.stop();
  }

  /** Sends a request as a user. @param path below `/_matrix/client/v3` */
  call(user: TestUser, method: string, path: string, body?: object): Promise<ApiAnswer> {
    return this.server.api(method, `${clientApi}${path}`, { token: user.token, ...(body && { body }) });
  }

  /** Sends `POST /login`. */
  login(body: object): Promise<ApiAnswer> {
    return this.server.api('POST', `${clientApi}/login`, { body });
  }

  /** Sends `POST /register`. */
  register(body: object): Promise<ApiAnswer> {
    return this.server.api('POST', `${clientApi}/register`, { body });
  }

  /** Creates a public room of Alice. @returns its id */
  async createRoom(options: object = {}): Promise<string> {
    const body = { preset: 'public_chat', ...options };
    return String((await this.call(this.alice, 'POST', '/createRoom', body)).body['room_id']);
  }

  /** Sends a message. */
  say(user: TestUser, roomId: string, body: string): Promise<ApiAnswer> {
    const path = `/rooms/${roomId}/send/m.room.message/${this.#transactions++}`;
    return this.call(user, 'PUT', path, { msgtype: 'm.text', body });
  }

  /** Redacts an event. */
  redact(user: TestUser, roomId: string, eventId: unknown, content: object): Promise<ApiAnswer> {
    return this.call(user, 'PUT', `/rooms/${roomId}/redact/${eventId}/${this.#transactions++}`, content);
  }

  /** Reads a resource of a room as Alice. @param path below `/rooms/{roomId}` @returns the response body */
  async read(roomId: string, path: string): Promise<Record<string, unknown>> {
    return (await this.call(this.alice, 'GET', `/rooms/${roomId}${path}`)).body;
  }

  /** Returns how often a callback has failed for a reason, according to the metrics. */
  async failures(callback: string, reason: string): Promise<number> {
    const { raw } = await this.server.api('GET', '/_synapse/metrics');
    const line = new RegExp(
      `^server_module_failures_total\\{.*callback="${callback}",reason="${reason}"\\} (\\d+)`,
      'm',
    );
    return Number(line.exec(raw)?.[1] ?? 0);
  }
}
