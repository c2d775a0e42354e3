import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { type JsonObject, splitStateMapKey } from '../../protocol/index.ts';
import { ClientEvents } from './client-events.ts';
import { FollowedCompletion } from './followed-completion.ts';
import { StateReader } from './state-reader.ts';

const carol = '@carol:test';

forSelectedDatabases(import.meta.url, (open) => {
  describe('the current state of a room as text', () => {
    /** Opens a room of alice and bob, and a reader of its state; counts the rendered events. */
    const openRoom = async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { engine, clock, caches } = fixture;
      const roomId = await fixture.room(alice, bob);
      let rendered = 0;
      const clientEvents = new ClientEvents(engine, clock, undefined, async (events) => {
        rendered += events.length;
        return events.map(() => undefined);
      });
      const completion = new FollowedCompletion(engine);
      const reader = new StateReader({ engine, clientEvents, completion, caches, clock });
      const viewer = (userId: string) => ({ userId, deviceId: 'DEVICE' });
      const read = {
        state: async (userId: string) =>
          JSON.parse(String(await reader.allAsText(viewer(userId), roomId))) as JsonObject[],
        members: async (userId: string, filter = {}) =>
          (
            JSON.parse(String(await reader.membersAsText(viewer(userId), roomId, filter))) as {
              chunk: JsonObject[];
            }
          ).chunk,
        joined: async (userId: string) =>
          (JSON.parse(String(await reader.joinedMembersAsText(userId, roomId))) as { joined: JsonObject })
            .joined,
      };
      const renderedBy = async (work: () => Promise<unknown>) => {
        const before = rendered;
        await work();
        return rendered - before;
      };
      const expectSameAsRendered = async (userId: string) =>
        assert.deepEqual(await read.state(userId), await reader.all(viewer(userId), roomId));
      const setTopic = (topic: string) =>
        fixture.rooms.sending.state(viewer(alice), roomId, { type: 'm.room.topic', stateKey: '' }, { topic });
      return { fixture, roomId, read, renderedBy, expectSameAsRendered, setTopic };
    };

    it('is rendered once for all members, and has the same events as when it is rendered for one member', async () => {
      const { read, renderedBy, expectSameAsRendered } = await openRoom();
      assert.ok((await renderedBy(() => read.state(alice))) > 0);
      assert.equal(await renderedBy(() => read.state(bob)), 0);
      await expectSameAsRendered(alice);
      await expectSameAsRendered(bob);
    });

    it('contains each change of the state at once, also by a redaction', async () => {
      const { fixture, roomId, read, expectSameAsRendered, setTopic } = await openRoom();
      const topics = async () =>
        (await read.state(bob)).filter(({ type }) => type === 'm.room.topic').map(({ content }) => content);
      assert.deepEqual(await topics(), []);
      await setTopic('one');
      assert.deepEqual(await topics(), [{ topic: 'one' }]);
      const second = await setTopic('zwei: äöü 🎉');
      assert.deepEqual(await topics(), [{ topic: 'zwei: äöü 🎉' }]);
      await fixture.rooms.sending.redact({ userId: alice, deviceId: 'DEVICE' }, roomId, second, {});
      assert.deepEqual(await topics(), [{}]);
      await expectSameAsRendered(alice);
    });

    it('lists the members by membership, also after they have changed', async () => {
      const { fixture, roomId, read } = await openRoom();
      const membersOf = async (filter: object) =>
        (await read.members(alice, filter)).map(({ state_key }) => state_key);
      assert.deepEqual(await membersOf({}), [alice, bob]);
      assert.deepEqual(Object.keys(await read.joined(alice)), [alice, bob]);
      await fixture.join(carol, roomId);
      await fixture.leave(bob, roomId);
      assert.deepEqual(await membersOf({}), [alice, bob, carol]);
      assert.deepEqual(await membersOf({ membership: 'join' }), [alice, carol]);
      assert.deepEqual(await membersOf({ membership: 'leave' }), [bob]);
      assert.deepEqual(await membersOf({ notMembership: 'leave' }), [alice, carol]);
      assert.deepEqual(await membersOf({ membership: 'leave', notMembership: 'leave' }), [alice, bob, carol]);
      assert.deepEqual(await membersOf({ membership: 'unknown' }), []);
      assert.deepEqual(await membersOf({ notMembership: 'unknown' }), [alice, bob, carol]);
      assert.deepEqual(Object.keys(await read.joined(alice)), [alice, carol]);
    });

    it('contains the ages of its events at the time of the read', async () => {
      const { fixture, read } = await openRoom();
      const ages = async () =>
        (await read.state(alice)).map(({ unsigned }) => (unsigned as { readonly age: number }).age);
      const before = await ages();
      fixture.clock.advance(98_765);
      assert.deepEqual(
        await ages(),
        before.map((age) => age + 98_765),
      );
    });

    it('is read while it is sent, some events at a time, when it has megabytes', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { engine, clock } = fixture;
      const roomId = await fixture.room(alice);
      const sender = { userId: alice, deviceId: 'DEVICE' };
      for (let index = 0; index < 150; index++) {
        const entry = { type: 'org.example.long', stateKey: `${index}` };
        await fixture.rooms.sending.state(sender, roomId, entry, { text: 'x'.repeat(45_000) });
      }
      let rendered = 0;
      const clientEvents = new ClientEvents(engine, clock, undefined, async (events) => {
        rendered += events.length;
        return events.map(() => undefined);
      });
      const completion = new FollowedCompletion(engine);
      const caches = plainCaches(clock, 0.5);
      const reader = new StateReader({ engine, clientEvents, completion, caches, clock });
      const answer = await reader.allAsText({ userId: alice, deviceId: undefined }, roomId);
      assert.ok(answer instanceof Readable);
      assert.ok(rendered < 150, `${rendered} events were rendered before the client has received any`);
      const events = JSON.parse(Buffer.concat(await answer.toArray()).toString()) as JsonObject[];
      const head = await engine.heads.get(roomId);
      assert.deepEqual(
        events.map(({ type, state_key }) => `${String(type)} ${String(state_key)}`),
        [...head!.state.keys()].map((key) => splitStateMapKey(key).join(' ')),
      );
    });
  });
});
