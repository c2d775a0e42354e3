import assert from 'node:assert/strict';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { FakeResolver } from '../../../test/support/network/loopback.ts';
import { commonTestAuthority } from '../../../test/support/network/test-authority.ts';
import {
  type ApiAnswer,
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';
import type { DatabaseOptions } from '../../kernel/database/index.ts';
import { PushGateway } from './push-gateway.ts';

export const clientPath = (path: string) => `/_matrix/client/v3${path}`;

/** A homeserver, and a push gateway that its pushers may reach without TLS. */
export class ServerWithPushers {
  readonly server: TestServer;
  readonly gateway: PushGateway;
  readonly clock: ManualClock;
  #transactions = 0;

  private constructor(server: TestServer, gateway: PushGateway, clock: ManualClock) {
    this.server = server;
    this.gateway = gateway;
    this.clock = clock;
  }

  static async start(
    database: DatabaseOptions['kind'],
    config: ConfigurationOverrides = {},
  ): Promise<ServerWithPushers> {
    const gateway = await PushGateway.start();
    const clock = manualClock();
    const resolver = new FakeResolver();
    resolver.hosts.set('push.example', ['127.0.0.1']);
    const outbound = { ip_range_whitelist: ['127.0.0.0/8'] };
    const authorities = [commonTestAuthority().pem];
    const server = await startTestServer({
      database,
      clock,
      resolver,
      authorities,
      config: { outbound, ...config },
    });
    return new ServerWithPushers(server, gateway, clock);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.gateway.stop();
  }

  get(path: string, { token }: { token: string }): Promise<ApiAnswer> {
    return this.server.api('GET', clientPath(path), { token });
  }

  async post(path: string, { token }: { token: string }, body: object): Promise<ApiAnswer> {
    return this.server.api('POST', clientPath(path), { token, body });
  }

  /** Sets a pusher of the gateway. */
  async addPusher(user: TestUser, pushkey: string, more: object = {}): Promise<void> {
    const { status, raw } = await this.post('/pushers/set', user, this.pusher(pushkey, more));
    assert.equal(status, 200, raw);
  }

  /** The body of a request that sets a pusher of the gateway. */
  pusher(pushkey: string, more: object = {}) {
    return {
      kind: 'http',
      app_id: 'org.example.app',
      pushkey,
      app_display_name: 'App',
      device_display_name: 'Phone',
      lang: 'en',
      data: { url: this.gateway.url(), format: 'event_id_only' },
      ...more,
    };
  }

  async pushkeysOf(user: { token: string }): Promise<string[]> {
    const { body } = await this.get('/pushers', user);
    return (body['pushers'] as { pushkey: string }[]).map(({ pushkey }) => pushkey).sort();
  }

  /** Makes a room that users have joined. */
  async room(owner: TestUser, members: readonly TestUser[], more: object = {}): Promise<string> {
    const { body, raw } = await this.post('/createRoom', owner, { preset: 'public_chat', ...more });
    assert.ok(body['room_id'], raw);
    const roomId = String(body['room_id']);
    for (const member of members) {
      const joined = await this.post(`/join/${encodeURIComponent(roomId)}`, member, {});
      assert.equal(joined.status, 200, joined.raw);
    }
    return roomId;
  }

  /** Sends an event. @returns its id */
  async send(sender: TestUser, roomId: string, content: object, type = 'm.room.message'): Promise<string> {
    const path = `/rooms/${encodeURIComponent(roomId)}/send/${type}/${++this.#transactions}`;
    const { body, status, raw } = await this.server.api('PUT', clientPath(path), {
      token: sender.token,
      body: content,
    });
    assert.equal(status, 200, raw);
    return String(body['event_id']);
  }

  say(sender: TestUser, roomId: string, text: string): Promise<string> {
    return this.send(sender, roomId, { msgtype: 'm.text', body: text });
  }

  async read(user: TestUser, roomId: string, eventId: string): Promise<void> {
    const path = `/rooms/${encodeURIComponent(roomId)}/receipt/m.read/${encodeURIComponent(eventId)}`;
    const { status, raw } = await this.post(path, user, {});
    assert.equal(status, 200, raw);
  }
}
