import assert from 'node:assert/strict';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { FakeResolver } from '../../../test/support/network/loopback.ts';
import { commonTestAuthority } from '../../../test/support/network/test-authority.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';
import type { DatabaseOptions } from '../../kernel/database/index.ts';
import { createLogger } from '../../kernel/observability/index.ts';
import { Clients } from './clients.ts';
import { PushGateway } from './push-gateway.ts';

interface Environment {
  readonly clock: ManualClock;
  readonly resolver: FakeResolver;
  readonly warnings: readonly Record<string, unknown>[];
}

/** A homeserver, and a push gateway that its pushers may reach without TLS. */
export class ServerWithPushers extends Clients {
  readonly gateway: PushGateway;
  readonly clock: ManualClock;
  readonly resolver: FakeResolver;
  /** Warnings that the server has logged. */
  readonly warnings: readonly Record<string, unknown>[];

  private constructor(server: TestServer, gateway: PushGateway, environment: Environment) {
    super(server);
    this.gateway = gateway;
    this.clock = environment.clock;
    this.resolver = environment.resolver;
    this.warnings = environment.warnings;
  }

  static async start(
    database: DatabaseOptions['kind'],
    config: ConfigurationOverrides = {},
  ): Promise<ServerWithPushers> {
    const gateway = await PushGateway.start();
    const clock = manualClock();
    const resolver = new FakeResolver();
    resolver.hosts.set('push.example', ['127.0.0.1']);
    const outbound = { ip_range_whitelist: ['127.0.0.1/32'] };
    const authorities = [commonTestAuthority().pem];
    const warnings: Record<string, unknown>[] = [];
    const destination = { write: (line: string) => void warnings.push(JSON.parse(line)) };
    const server = await startTestServer({
      database,
      clock,
      resolver,
      authorities,
      log: createLogger({ level: 'warn', destination }),
      config: { outbound, ...config },
    });
    return new ServerWithPushers(server, gateway, { clock, resolver, warnings });
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.gateway.stop();
  }

  /** Returns a measurement without labels, as `/metrics` shows it. */
  async measurement(name: string): Promise<number> {
    const response = await fetch(`${this.server.baseUrl}/_synapse/metrics`);
    return Number(new RegExp(`^${name} (.*)$`, 'm').exec(await response.text())?.[1]);
  }

  /** Sets a pusher of a user that sends to the gateway. */
  async addPusher(user: TestUser, pushkey: string, changes: object = {}): Promise<void> {
    const { status, raw } = await this.post('/pushers/set', user, this.pusher(pushkey, changes));
    assert.equal(status, 200, raw);
  }

  /** Returns the body of a request that sets a pusher that sends to the gateway. */
  pusher(pushkey: string, changes: object = {}) {
    return {
      kind: 'http',
      app_id: 'org.example.app',
      pushkey,
      app_display_name: 'App',
      device_display_name: 'Phone',
      lang: 'en',
      data: { url: this.gateway.url(), format: 'event_id_only' },
      ...changes,
    };
  }
}
