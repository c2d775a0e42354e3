import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest, RoutesUnderTest } from '../../test/support/rooms/rooms.ts';
import { Typing } from './index.ts';
import { typingRoutes } from './routes.ts';

async function openTyping(open: OpenDatabase) {
  const fixture = await RoomsUnderTest.open(open);
  const { streams, clock, caches, engine } = fixture;
  const typing = new Typing({ streams, clock, caches, roomStream: engine.stream });
  const announced: string[] = [];
  typing.typingStream.subscribe(({ roomId }) => announced.push(roomId));
  return { fixture, typing, announced };
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('typing', () => {
    it('returns typing users, the first to begin first, and announces changes only', async () => {
      const { typing, announced } = await openTyping(open);
      typing.set(alice, '!room', true, 10_000);
      typing.set(bob, '!room', true, 10_000);
      typing.set(alice, '!room', true, 10_000);
      assert.deepEqual(typing.inRoom('!room'), [alice, bob]);
      assert.deepEqual(typing.inRoom('!other'), []);
      assert.deepEqual(announced, ['!room', '!room']);
      typing.set(alice, '!room', false, 0);
      typing.set(alice, '!room', false, 0);
      assert.deepEqual(typing.inRoom('!room'), [bob]);
      assert.equal(announced.length, 3);
    });

    it('reports whether a room has changed after a position', async () => {
      const { fixture, typing } = await openTyping(open);
      const start = fixture.streams.current;
      assert.equal(typing.changedSince('!room', start), false);
      typing.set(alice, '!room', true, 10_000);
      assert.equal(typing.changedSince('!room', start), true);
      assert.equal(typing.changedSince('!other', start), false);
      assert.equal(typing.changedSince('!room', fixture.streams.current), false);
    });

    it('ends a typing notification at its timeout, counted from the last repetition', async () => {
      const { fixture, typing, announced } = await openTyping(open);
      typing.set(alice, '!room', true, 10_000);
      fixture.clock.advance(9_000);
      typing.set(alice, '!room', true, 10_000);
      fixture.clock.advance(9_999);
      assert.deepEqual(typing.inRoom('!room'), [alice]);
      fixture.clock.advance(1);
      assert.deepEqual(typing.inRoom('!room'), []);
      assert.equal(announced.length, 2);
    });

    it('bounds the timeout and the number of typing users in a room', async () => {
      const { fixture, typing } = await openTyping(open);
      for (let user = 0; user < 150; user++) typing.set(`@${user}:test`, '!room', true, 1e15);
      assert.equal(typing.inRoom('!room').length, 100);
      typing.set(alice, '!other', true, -5);
      assert.deepEqual(typing.inRoom('!other'), []);
      fixture.clock.advance(120_000);
      assert.deepEqual(typing.inRoom('!room'), []);
    });

    it('ends a typing notification when the user leaves the room', async () => {
      const { fixture, typing } = await openTyping(open);
      const roomId = await fixture.room(alice, bob);
      typing.set(alice, roomId, true, 10_000);
      typing.set(bob, roomId, true, 10_000);
      await fixture.leave(bob, roomId);
      assert.deepEqual(typing.inRoom(roomId), [alice]);
    });

    it('ends all typing notifications when closed', async () => {
      const { fixture, typing, announced } = await openTyping(open);
      typing.set(alice, '!room', true, 10_000);
      typing.close();
      fixture.clock.advance(60_000);
      assert.deepEqual(typing.inRoom('!room'), []);
      assert.equal(announced.length, 1);
    });
  });

  describe('PUT /rooms/{roomId}/typing/{userId}', () => {
    let fixture: RoomsUnderTest;
    let typing: Typing;
    let http: RoutesUnderTest;
    let roomId: string;
    before(async () => {
      ({ fixture, typing } = await openTyping(open));
      http = await RoutesUnderTest.start(typingRoutes(typing, fixture.engine), fixture.clock);
      roomId = await fixture.room(alice, bob);
    });
    after(() => http.stop());
    const put = (as: string, userId: string, body: unknown, room = roomId) =>
      http.call(as, 'PUT', `/rooms/${room}/typing/${userId}`, body);

    it('sets and ends a typing notification', async () => {
      assert.deepEqual(await put(alice, alice, { typing: true, timeout: 30_000 }), { status: 200, body: {} });
      assert.equal((await put(bob, bob, { typing: true })).status, 200);
      assert.deepEqual(typing.inRoom(roomId), [alice, bob]);
      await put(alice, alice, { typing: false });
      fixture.clock.advance(30_000);
      assert.deepEqual(typing.inRoom(roomId), []);
    });

    it('rejects a notification for another user, or in a room that the user is not joined to, with 403 M_FORBIDDEN', async () => {
      const typed = { typing: true, timeout: 1000 };
      assert.equal((await put(alice, bob, typed)).body['errcode'], 'M_FORBIDDEN');
      assert.equal((await put(carol, carol, typed)).body['errcode'], 'M_FORBIDDEN');
      assert.equal((await put(alice, alice, typed, '!nowhere:test')).status, 403);
      assert.deepEqual(typing.inRoom(roomId), []);
    });

    it('rejects a malformed body with 400', async () => {
      for (const body of [
        {},
        { typing: 'yes' },
        { typing: true, timeout: '1' },
        { typing: true, timeout: 0.5 },
      ]) {
        assert.equal((await put(alice, alice, body)).status, 400);
      }
    });
  });
});
