import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../../../test/support/servers/server.ts';
import { type SeenEvent, TestRoom } from '../../../test/support/users/test-room.ts';

interface Page {
  readonly notifications: {
    readonly actions: unknown[];
    readonly event: SeenEvent;
    readonly read: boolean;
    readonly room_id: string;
  }[];
  readonly next_token?: string;
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('notifications', () => {
    let server: TestServer;
    let [alice, bob]: TestUser[] = [];
    before(async () => {
      server = await startTestServer({ database: open.kind });
      [alice, bob] = [await server.register('alice'), await server.register('bob')];
    });
    after(() => server.stop());

    const list = async (user: TestUser, query: Record<string, string | number> = {}) => {
      const { body, status, raw } = await server.api('GET', '/_matrix/client/v3/notifications', {
        token: user.token,
        query,
      });
      assert.equal(status, 200, raw);
      return body as unknown as Page;
    };
    const texts = ({ notifications }: Page) => notifications.map(({ event }) => event.content['body']);

    it('lists the events that notified a user in their joined rooms, the latest first, page by page', async () => {
      const early = await TestRoom.create(server, alice!);
      await early.say(alice!, 'before Bob came');
      await early.join(bob!);
      const other = await TestRoom.create(server, alice!, [bob!]);
      await early.say(alice!, 'one');
      await other.say(alice!, 'two', { 'm.mentions': { user_ids: [bob!.userId] } });
      await early.send(alice!, 'm.room.message', { msgtype: 'm.notice', body: 'a notice' });
      await early.say(bob!, 'mine');
      const gone = await other.say(alice!, 'gone');
      await other.redact(alice!, gone);
      const three = await early.say(alice!, 'three');
      await other.say(alice!, 'four');

      assert.deepEqual(texts(await list(bob!)), ['four', 'three', 'two', 'one']);
      assert.deepEqual(texts(await list(bob!, { only: 'highlight' })), ['two']);
      const first = await list(bob!, { limit: 3 });
      assert.deepEqual(texts(first), ['four', 'three', 'two']);
      const rest = await list(bob!, { limit: 3, from: first.next_token! });
      assert.deepEqual(texts(rest), ['one']);
      assert.equal(rest.next_token, undefined);
      assert.equal(first.notifications[0]!.room_id, other.roomId);
      assert.ok(first.notifications[0]!.actions.includes('notify'));
      assert.deepEqual(texts(await list(alice!)), ['mine']);

      await early.call(bob!, 'POST', `/receipt/m.read/${encodeURIComponent(three)}`, { body: {} });
      const read = (await list(bob!)).notifications.map((notification) => notification.read);
      assert.deepEqual(read, [false, true, false, true]);
      await other.leave(bob!);
      assert.deepEqual(texts(await list(bob!)), ['three', 'one']);
    });

    it('lists invites, except those that the invite permissions block', async () => {
      const [carol, dave] = [await server.register('carol'), await server.register('dave')];
      const creation = { preset: 'private_chat', invite: [dave.userId] };
      const { roomId } = await TestRoom.create(server, carol, [], creation);
      const { notifications } = await list(dave);
      assert.deepEqual(
        notifications.map(({ room_id, event }) => [room_id, event.type, event.content['membership']]),
        [[roomId, 'm.room.member', 'invite']],
      );
      const path = `/_matrix/client/v3/user/${dave.userId}/account_data/m.invite_permission_config`;
      await server.api('PUT', path, { token: dave.token, body: { default_action: 'block' } });
      assert.deepEqual((await list(dave)).notifications, []);
    });

    it('rejects an invalid token with 400 M_INVALID_PARAM', async () => {
      const { status, body } = await server.api('GET', '/_matrix/client/v3/notifications', {
        token: alice!.token,
        query: { from: 'nonsense' },
      });
      assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM']);
    });
  });
});
