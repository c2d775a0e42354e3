import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { EventRules, NewEvent, SpamChecker } from 'hearth/module';
import { eventually } from '../clients/eventually.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { denialWithField, ModuleServer } from './module-server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`event callbacks of modules on ${database}`, () => {
    let fixture: ModuleServer;
    before(async () => {
      fixture = await ModuleServer.start({ database });
    });
    after(() => fixture.stop());
    afterEach(() => fixture.removeCallbacks());

    it('lets modules reject messages, state events, joins, invites, rooms, aliases, registrations and logins with errors of their own', async () => {
      const roomId = await fixture.createRoom();
      const deniedRequests: readonly [
        SpamChecker,
        () => Promise<{ status: number; body: Record<string, unknown> }>,
      ][] = [
        [
          { checkEvent: ({ content }) => (content['body'] === 'spam' ? denialWithField : 'allow') },
          () => fixture.say(fixture.alice, roomId, 'spam'),
        ],
        [
          { checkStateEvent: async () => denialWithField },
          () => fixture.call(fixture.alice, 'PUT', `/rooms/${roomId}/state/m.room.topic`, { topic: 'x' }),
        ],
        [
          { mayInvite: (_, invitee) => (invitee === fixture.bob.userId ? denialWithField : 'allow') },
          () =>
            fixture.call(fixture.alice, 'POST', `/rooms/${roomId}/invite`, { user_id: fixture.bob.userId }),
        ],
        [
          { mayJoinRoom: (userId) => (userId === fixture.bob.userId ? denialWithField : 'allow') },
          () => fixture.call(fixture.bob, 'POST', `/rooms/${roomId}/join`, {}),
        ],
        [
          {
            mayCreateRoom: (_, events) =>
              events.some(({ type }) => type === 'm.room.name') ? denialWithField : 'allow',
          },
          () => fixture.call(fixture.alice, 'POST', '/createRoom', { name: 'x' }),
        ],
        [
          { mayCreateAlias: (_, alias) => (alias === '#bad:test' ? denialWithField : 'allow') },
          () => fixture.call(fixture.alice, 'PUT', '/directory/room/%23bad:test', { room_id: roomId }),
        ],
        [
          { checkRegistration: ({ userId }) => (userId === '@mallory:test' ? denialWithField : 'allow') },
          () =>
            fixture.register({
              username: 'mallory',
              password: 'correct horse',
              auth: { type: 'm.login.dummy' },
            }),
        ],
        [
          { checkLogin: ({ deviceId }) => (deviceId === 'BAD' ? denialWithField : 'allow') },
          () =>
            fixture.login({
              type: 'm.login.password',
              user: 'alice',
              password: 'correct horse',
              device_id: 'BAD',
            }),
        ],
      ];
      for (const [callbacks, request] of deniedRequests) {
        fixture.checker = callbacks;
        const { status, body } = await request();
        const [name] = Object.keys(callbacks);
        assert.deepEqual(
          [name, status, body['errcode'], body['error'], body['org.test.why']],
          [name, 418, 'ORG_TEST_NO', 'Not here', 1],
        );
      }
      fixture.checker = {};
      for (const [, request] of deniedRequests) {
        const { status } = await request();
        assert.equal(status, 200);
      }
    });

    it('lets modules refuse the publication of a room, an event because of the state of its room, and a new room, and replace the content of an event', async () => {
      const roomId = await fixture.createRoom({ topic: 'quiet' });
      fixture.checker = { mayPublishRoom: () => denialWithField };
      const published = await fixture.call(fixture.alice, 'PUT', `/directory/list/room/${roomId}`, {
        visibility: 'public',
      });
      assert.deepEqual([published.status, published.body['errcode']], [403, 'M_FORBIDDEN']);
      fixture.rules = {
        async checkEventAllowed({ type, sender }, state) {
          if (type !== 'm.room.message') return 'allow';
          const topic = await state.get('m.room.topic', '');
          assert.equal(await state.membership(sender), 'join');
          assert.equal(await state.get('m.room.topic', 'none'), undefined);
          return topic?.content['topic'] === 'quiet' ? denialWithField : 'allow';
        },
      };
      assert.equal((await fixture.say(fixture.alice, roomId, 'hello')).status, 418);
      assert.equal(
        (await fixture.say(fixture.alice, await fixture.createRoom({ topic: 'loud' }), 'hello')).status,
        200,
      );
      fixture.rules = {
        checkEventAllowed: ({ content }) =>
          content['body'] === 'password' ? { content: { msgtype: 'm.text', body: '********' } } : 'allow',
      };
      const { body: sent } = await fixture.say(fixture.alice, roomId, 'password');
      const stored = await fixture.call(fixture.alice, 'GET', `/rooms/${roomId}/event/${sent['event_id']}`);
      assert.deepEqual(stored.body['content'], { msgtype: 'm.text', body: '********' });
      fixture.rules = { checkRoomCreation: () => denialWithField };
      assert.equal((await fixture.call(fixture.alice, 'POST', '/createRoom', {})).status, 418);
    });

    it('lets modules change texts in memberships, redactions and new rooms, and answers 500 when a module empties the content of a kick or a new room', async () => {
      const textHiding: EventRules = {
        checkEventAllowed: ({ content }) => ({
          content: Object.fromEntries(
            Object.entries(content).map(([name, value]) =>
              ['displayname', 'reason', 'topic'].includes(name) ? [name, '***'] : [name, value],
            ),
          ),
        }),
      };
      for (const room_version of ['10', '12']) {
        fixture.rules = textHiding;
        const roomId = await fixture.createRoom({ topic: 'secret', name: 'Open', room_version });
        assert.equal((await fixture.call(fixture.bob, 'POST', `/rooms/${roomId}/join`, {})).status, 200);
        const { body: sent } = await fixture.say(fixture.bob, roomId, 'hello');
        const { body: redaction } = await fixture.redact(fixture.alice, roomId, sent['event_id'], {
          reason: 'secret',
        });
        fixture.rules = {};
        const contentOf = (path: string) => fixture.read(roomId, path);
        assert.equal((await contentOf('/state/m.room.topic'))['topic'], '***');
        assert.equal((await contentOf('/state/m.room.name'))['name'], 'Open');
        assert.deepEqual(await contentOf(`/state/m.room.member/${fixture.bob.userId}`), {
          membership: 'join',
          displayname: '***',
        });
        const event = (await contentOf(`/event/${redaction['event_id']}`)) as Record<string, object>;
        assert.equal((event['content'] as Record<string, unknown>)['reason'], '***');
        fixture.rules = { checkEventAllowed: () => ({ content: {} }) };
        const kick = await fixture.call(fixture.alice, 'POST', `/rooms/${roomId}/kick`, {
          user_id: fixture.bob.userId,
        });
        assert.equal(kick.status, 500);
        const creation = await fixture.call(fixture.alice, 'POST', '/createRoom', { room_version });
        assert.equal(creation.status, 500);
      }
    });

    it('tells modules whether a joining user was invited, and does not call them when a member changes their profile', async () => {
      const roomId = await fixture.createRoom();
      const joins: unknown[] = [];
      fixture.checker = {
        mayJoinRoom: (...values) => {
          joins.push(values);
          return 'allow';
        },
      };
      await fixture.call(fixture.bob, 'POST', `/rooms/${roomId}/join`, {});
      await fixture.call(fixture.bob, 'POST', `/rooms/${roomId}/leave`, {});
      await fixture.call(fixture.alice, 'POST', `/rooms/${roomId}/invite`, { user_id: fixture.bob.userId });
      await fixture.call(fixture.bob, 'POST', `/rooms/${roomId}/join`, {});
      await fixture.call(fixture.bob, 'PUT', `/rooms/${roomId}/state/m.room.member/${fixture.bob.userId}`, {
        membership: 'join',
        displayname: 'B',
      });
      assert.deepEqual(joins, [
        [fixture.bob.userId, roomId, false],
        [fixture.bob.userId, roomId, true],
      ]);
    });

    it('passes modules new events in order and lets them send events as users, also when a callback fails', async () => {
      const roomId = await fixture.createRoom();
      const received: NewEvent[] = [];
      fixture.rules = {
        async onNewEvent(event, state) {
          if (event.type !== 'm.room.message') return;
          received.push(event);
          if (event.content['body'] !== 'ping') throw new Error('on purpose');
          assert.equal(await state.membership(fixture.alice.userId), 'join');
          await fixture.api.rooms.send({
            roomId,
            sender: fixture.alice.userId,
            type: 'm.room.message',
            content: { msgtype: 'm.notice', body: 'pong' },
          });
        },
      };
      const { body } = await fixture.say(fixture.alice, roomId, 'ping');
      await eventually('the answer of the module', () => received.length === 2);
      assert.equal(received[0]?.eventId, body['event_id']);
      assert.deepEqual(
        received.map(({ content }) => content['body']),
        ['ping', 'pong'],
      );
      await eventually(
        'the failure of the callback',
        async () => (await fixture.failures('onNewEvent', 'error')) > 0,
      );
      const topic = {
        roomId,
        sender: fixture.alice.userId,
        type: 'm.room.topic',
        stateKey: '',
        content: { topic: 'x' },
      };
      await fixture.api.rooms.send(topic);
      assert.deepEqual((await fixture.api.rooms.state(roomId).get('m.room.topic', ''))?.content, {
        topic: 'x',
      });
      await assert.rejects(fixture.api.rooms.send({ ...topic, sender: '@stranger:test' }), {
        errcode: 'M_FORBIDDEN',
      });
    });
  });
}
