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
  describe('GET /notifications', () => {
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
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

    it('lists nothing while push is off', async () => {
      const silent = await startTestServer({
        database: open.kind,
        config: { push: { push: { enabled: false } } },
      });
      try {
        const [anna, ben] = [await silent.register('anna'), await silent.register('ben')];
        const room = await TestRoom.create(silent, anna, [ben]);
        await room.say(anna, 'hello ben');
        const { body } = await silent.api('GET', '/_matrix/client/v3/notifications', { token: ben.token });
        assert.deepEqual(body, { notifications: [] });
      } finally {
        await silent.stop();
      }
    });

    it('lists the events that notified a user in their joined rooms, the latest first, page by page', async () => {
      const firstRoom = await TestRoom.create(server, alice);
      await firstRoom.say(alice, 'before Bob came');
      await firstRoom.join(bob);
      const secondRoom = await TestRoom.create(server, alice, [bob]);
      await firstRoom.say(alice, 'one');
      await secondRoom.say(alice, 'two', { 'm.mentions': { user_ids: [bob.userId] } });
      await firstRoom.send(alice, 'm.room.message', { msgtype: 'm.notice', body: 'a notice' });
      await firstRoom.say(bob, 'mine');
      const redacted = await secondRoom.say(alice, 'gone');
      await secondRoom.redact(alice, redacted);
      const three = await firstRoom.say(alice, 'three');
      await secondRoom.say(alice, 'four');

      assert.deepEqual(texts(await list(bob)), ['four', 'three', 'two', 'one']);
      assert.deepEqual(texts(await list(bob, { only: 'highlight' })), ['two']);
      const firstPage = await list(bob, { limit: 3 });
      assert.deepEqual(texts(firstPage), ['four', 'three', 'two']);
      const secondPage = await list(bob, { limit: 3, from: firstPage.next_token! });
      assert.deepEqual(texts(secondPage), ['one']);
      assert.equal(secondPage.next_token, undefined);
      assert.equal(firstPage.notifications[0]!.room_id, secondRoom.roomId);
      assert.ok(firstPage.notifications[0]!.actions.includes('notify'));
      assert.deepEqual(texts(await list(alice)), ['mine']);

      await firstRoom.call(bob, 'POST', `/receipt/m.read/${encodeURIComponent(three)}`, { body: {} });
      const read = (await list(bob)).notifications.map((notification) => notification.read);
      assert.deepEqual(read, [false, true, false, true]);
      await secondRoom.leave(bob);
      assert.deepEqual(texts(await list(bob)), ['three', 'one']);
    });

    it('lists fewer notifications in a page, and the others in the next pages, when the push rules of the user take many steps', async () => {
      const erin = await server.register('erin');
      const room = await TestRoom.create(server, alice, [erin]);
      for (let index = 0; index < 40; index++) {
        const path = `/_matrix/client/v3/pushrules/global/content/rule${index}`;
        const body = { pattern: `*a*${index}*b`, actions: ['notify'] };
        await server.api('PUT', path, { token: erin.token, body });
      }
      for (let index = 0; index < 12; index++) await room.say(alice, `${index} ${'a'.repeat(50_000)}`);
      const firstPage = await list(erin, { limit: 50 });
      const secondPage = await list(erin, { limit: 50, from: firstPage.next_token! });
      assert.equal(firstPage.notifications.length, 9);
      assert.deepEqual(
        [...texts(firstPage), ...texts(secondPage)].map((text) => Number(String(text).split(' ', 1)[0])),
        [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
      );
    });

    it('lists invites, except invites that the invite permissions block', async () => {
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

    it('answers 400 M_INVALID_PARAM to an invalid from token', async () => {
      const { status, body } = await server.api('GET', '/_matrix/client/v3/notifications', {
        token: alice.token,
        query: { from: 'nonsense' },
      });
      assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM']);
    });
  });
});
