import assert from 'node:assert/strict';
import type { ApiAnswer, TestServer, TestUser } from '../../../test/support/servers/server.ts';

export const clientPath = (path: string) => `/_matrix/client/v3${path}`;

/** Sends client requests for tests of notifications. */
export class Clients {
  readonly server: TestServer;
  #transactions = 0;

  constructor(server: TestServer) {
    this.server = server;
  }

  get(path: string, { token }: { token: string }): Promise<ApiAnswer> {
    return this.server.api('GET', clientPath(path), { token });
  }

  async post(path: string, { token }: { token: string }, body: object): Promise<ApiAnswer> {
    return this.server.api('POST', clientPath(path), { token, body });
  }

  async pushkeysOf(user: { token: string }): Promise<string[]> {
    const { body } = await this.get('/pushers', user);
    return (body['pushers'] as { pushkey: string }[]).map(({ pushkey }) => pushkey).sort();
  }

  /** Creates a room and lets users join it. @returns the room id */
  async room(owner: TestUser, members: readonly TestUser[], options: object = {}): Promise<string> {
    const { body, raw } = await this.post('/createRoom', owner, { preset: 'public_chat', ...options });
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
