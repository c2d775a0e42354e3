import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseOptions } from '../../../src/kernel/database/index.ts';
import { writeSigningKeys } from '../../../src/protocol/index.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { FakeResolver } from '../network/loopback.ts';
import { openTcpProxy, type TcpProxy } from '../network/tcp-proxy.ts';
import { commonTestAuthority, type TestAuthority } from '../network/test-authority.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '../servers/server.ts';
import { TestClient } from '../users/test-client.ts';
import { until } from './federation-sender.ts';
import { type ScriptedServer, startScriptedServer } from './scripted-server.ts';

/** A homeserver that other servers reach by its name over TLS. */
export interface FederatedServer extends TestServer {
  /** The server name. */
  readonly name: string;
  /** Makes this server unreachable for others; `reconnect` makes it reachable again. */
  disconnect(): void;
  reconnect(): void;
  /** Waits until another server has tried to connect after the last `disconnect`. */
  untilConnectionAttempt(): Promise<void>;
  /** Registers a user and returns a client for them. */
  registerClient(username: string): Promise<TestClient>;
}

/** Options that a test can choose for a server. */
export type FederatedServerOptions = Partial<Omit<TestServerOptions, 'database' | 'resolver' | 'listening'>>;

/** Options for a server that does not repeat failed requests. */
export const withoutRetries: FederatedServerOptions = {
  config: { federationClient: { federation: { max_short_retries: 0 } } },
};

/** Servers that federate over real HTTP and TLS on the loopback address, under made-up names. */
export class SeveralServers {
  readonly #database: DatabaseOptions['kind'];
  readonly #authority: TestAuthority = commonTestAuthority();
  readonly #folder = mkdtempSync(join(tmpdir(), 'hearth-several-'));
  readonly #started: { stop(): Promise<void> }[] = [];
  /** The resolver of all servers; a test may add names. */
  readonly resolver = new FakeResolver();

  constructor(database: DatabaseOptions['kind']) {
    this.#database = database;
  }

  /** Starts a homeserver for each of the names. */
  static async open<const Names extends readonly string[]>(
    database: DatabaseOptions['kind'],
    names: Names,
    options: FederatedServerOptions = {},
  ): Promise<{ several: SeveralServers; servers: { readonly [I in keyof Names]: FederatedServer } }> {
    const several = new SeveralServers(database);
    try {
      const servers: FederatedServer[] = [];
      for (const name of names) servers.push(await several.homeserver(name, options));
      return { several, servers: servers as unknown as { readonly [I in keyof Names]: FederatedServer } };
    } catch (error) {
      await several.stop();
      throw error;
    }
  }

  /** Starts two homeservers, `a.test` with the user Anna and `b.test` with the user Ben. */
  static async pair(database: DatabaseOptions['kind']) {
    const { several, servers } = await SeveralServers.open(database, ['a.test', 'b.test']);
    const [a, b] = servers;
    return { several, a, b, anna: await a.registerClient('anna'), ben: await b.registerClient('ben') };
  }

  /**
   * Starts the homeserver `a.test` with the user Anna, and a scripted server.
   * @param name of the scripted server
   */
  static async withScriptedServer(
    database: DatabaseOptions['kind'],
    name: string,
    options: FederatedServerOptions = {},
  ) {
    const { several, servers } = await SeveralServers.open(database, ['a.test'], options);
    const [a] = servers;
    return { several, a, peer: await several.scripted(name), anna: await a.registerClient('anna') };
  }

  /** Starts a homeserver. @param name for instance `a.test` */
  async homeserver(name: string, options: FederatedServerOptions = {}): Promise<FederatedServer> {
    const front = await this.#openProxy(name);
    const config = this.#configuration(name, options.config);
    const server = await startTestServer({
      ...options,
      config,
      database: this.#database,
      resolver: this.resolver,
      listening: ([, federation]) => {
        front.target = Number(new URL(federation!).port);
      },
    });
    this.#started.push({ stop: () => server.stop() });
    const federated: FederatedServer = {
      name,
      get baseUrl() {
        return server.baseUrl;
      },
      get homeserver() {
        return server.homeserver;
      },
      databaseOptions: server.databaseOptions,
      api: server.api,
      register: server.register,
      registerClient: (username) => TestClient.register(server, username),
      restart: () => server.restart(),
      stop: () => server.stop(),
      disconnect: () => front.disconnect(),
      reconnect: () => front.reconnect(),
      untilConnectionAttempt: () => until(() => front.refusedConnections > 0, 'a refused connection'),
    };
    return federated;
  }

  /** Starts a server whose responses the test defines. */
  async scripted(name: string): Promise<ScriptedServer> {
    const front = await this.#openProxy(name);
    const server = await startScriptedServer({
      name,
      authority: this.#authority,
      portOf: (other) => this.#portOf(other),
    });
    front.target = server.port;
    this.#started.push(server);
    return server;
  }

  async stop(): Promise<void> {
    for (const server of this.#started.splice(0).reverse()) await server.stop();
    this.#authority.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #openProxy(name: string): Promise<TcpProxy> {
    const front = await openTcpProxy();
    this.#started.push({ stop: () => front.close() });
    this.resolver.hosts.set(name, ['127.0.0.1']);
    const record = { name, port: front.port, priority: 0, weight: 0 };
    this.resolver.srv.set(`_matrix-fed._tcp.${name}`, [record]);
    return front;
  }

  #portOf(name: string): number {
    const port = this.resolver.srv.get(`_matrix-fed._tcp.${name}`)?.[0]?.port;
    if (port === undefined) throw new Error(`there is no server ${name}`);
    return port;
  }

  #configuration(name: string, overrides: ConfigurationOverrides = {}): ConfigurationOverrides {
    const path = (suffix: string) => join(this.#folder, name + suffix);
    const { key, cert } = this.#authority.issue(name);
    writeFileSync(path('.key.pem'), key);
    writeFileSync(path('.cert.pem'), cert);
    writeFileSync(path('.signing.key'), writeSigningKeys([newSigningKey(`of_${name[0]}`)]));
    const listener = { port: 0, type: 'http', bind_addresses: ['127.0.0.1'] } as const;
    return {
      ...overrides,
      server: { server_name: name, ...overrides.server },
      http: {
        listeners: [
          { ...listener, resources: [{ names: ['client'] }] },
          { ...listener, tls: true, resources: [{ names: ['federation'] }] },
        ],
        tls_certificate_path: path('.cert.pem'),
        tls_private_key_path: path('.key.pem'),
        ...overrides.http,
      },
      outbound: { ip_range_whitelist: ['127.0.0.0/8'], ...overrides.outbound },
      federationClient: {
        signing_key_path: path('.signing.key'),
        federation_custom_ca_list: [this.#authority.path],
        trusted_key_servers: [],
        ...overrides.federationClient,
      },
    };
  }
}
