import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { type JsonObject, MatrixError } from '../protocol/index.ts';
import type { EventCheck, EventCheckContext, EventToSend } from '../room-engine/index.ts';
import { RemoteMemberships } from '../room-federation/index.ts';

/** The arguments of a call of a check. */
type CheckCall = [EventToSend, EventCheckContext];

const spam = new MatrixError(403, 'ORG_TEST_SPAM', 'This looks like spam', { 'org.test.why': 1 });

/** Returns a check that records its arguments and rejects the events that `isSpam` selects, and the recorded calls. */
function recordingCheck(isSpam: (draft: EventToSend) => boolean = () => false) {
  const calls: CheckCall[] = [];
  const check: EventCheck = {
    async check(draft, context) {
      calls.push([draft, context]);
      return isSpam(draft) ? spam : undefined;
    },
  };
  return {
    calls,
    check,
    names: () => calls.map(([{ type, content }]) => `${type} ${content['membership'] ?? ''}`.trim()),
  };
}

const saysSpam = ({ content }: EventToSend) => JSON.stringify(content).includes('spam');
const sender = (userId: string) => ({ userId, deviceId: 'DEVICE' });

forSelectedDatabases(import.meta.url, (open) => {
  /**
   * Opens rooms that use the checks of the returned list; tests add checks to it after they have prepared the rooms.
   */
  async function openWithChecks() {
    const checks: EventCheck[] = [];
    const fixture = await RoomsUnderTest.open(open, [], { eventChecks: () => checks });
    return { fixture, checks };
  }

  const rejectsAsSpam = (work: Promise<unknown>) => assert.rejects(work, (error) => error === spam);
  const extremityIds = async ({ engine }: RoomsUnderTest, roomId: string) =>
    (await engine.heads.get(roomId))?.extremities.map(({ eventId }) => eventId);

  describe('checks of events by modules (EventChecks)', () => {
    it('calls a check once for each message, redaction, state event and membership', async () => {
      const { fixture, checks } = await openWithChecks();
      const { engine, rooms } = fixture;
      assert.equal(engine.checks.isEmpty, true);
      const roomId = await fixture.room(alice);
      const { calls, check, names } = recordingCheck();
      checks.push(check);
      assert.equal(engine.checks.isEmpty, false);
      await fixture.redact(alice, roomId, await fixture.say(alice, roomId, 'hello'));
      await rooms.sending.state(
        sender(alice),
        roomId,
        { type: 'm.room.topic', stateKey: '' },
        { topic: 'x' },
      );
      await rooms.memberships.invite(alice, roomId, bob);
      await fixture.join(bob, roomId);
      await rooms.memberships.kick(alice, roomId, bob);
      await rooms.memberships.ban(alice, roomId, bob);
      assert.deepEqual(names(), [
        'm.room.message',
        'm.room.redaction',
        'm.room.topic',
        'm.room.member invite',
        'm.room.member join',
        'm.room.member leave',
        'm.room.member ban',
      ]);
      assert.deepEqual(calls[0], [
        {
          type: 'm.room.message',
          sender: alice,
          content: { msgtype: 'm.text', body: 'hello' },
          originServerTs: undefined,
        },
        { roomId },
      ]);
    });

    it('rejects an event with the error of the check, and stores nothing of the event', async () => {
      const { fixture, checks } = await openWithChecks();
      const { rooms } = fixture;
      const roomId = await fixture.room(alice, bob);
      const before = await extremityIds(fixture, roomId);
      checks.push(recordingCheck(saysSpam).check);
      await rejectsAsSpam(fixture.say(alice, roomId, 'spam'));
      await rejectsAsSpam(
        rooms.sending.state(sender(alice), roomId, { type: 'x', stateKey: '' }, { spam: 1 }),
      );
      await rejectsAsSpam(
        rooms.memberships.invite(alice, roomId, carol, { extraContent: { reason: 'spam' } }),
      );
      await rejectsAsSpam(rooms.memberships.join(carol, roomId, { extraContent: { displayname: 'spam' } }));
      await rejectsAsSpam(rooms.memberships.leave(bob, roomId, { extraContent: { reason: 'spam' } }));
      assert.deepEqual(await extremityIds(fixture, roomId), before);
      await fixture.say(alice, roomId, 'fine');
      assert.notDeepEqual(await extremityIds(fixture, roomId), before);
    });

    it('checks all events of a new room before it exists, and rejects the whole room', async () => {
      const { fixture, checks } = await openWithChecks();
      for (const room_version of ['10', '12']) {
        const { calls, check } = recordingCheck(saysSpam);
        checks.push(check);
        const roomId = await fixture.rooms.creation.create(alice, {
          room_version,
          name: 'fine',
          invite: [bob],
        });
        const types = calls.map(([{ type }]) => type);
        assert.equal(types[0], 'm.room.create');
        assert.ok(types.includes('m.room.name'));
        for (const [draft, context] of calls) {
          assert.equal(context.roomId, room_version === '12' ? undefined : roomId);
          assert.ok(context.newRoom?.includes(draft));
          assert.equal(context.newRoom?.length, calls.length);
        }
        const rooms = await fixture.engine.userRooms.of(alice);
        await rejectsAsSpam(fixture.rooms.creation.create(alice, { room_version, name: 'spam' }));
        assert.deepEqual([...(await fixture.engine.userRooms.of(alice)).keys()], [...rooms.keys()]);
      }
    });

    it('returns the unchanged error of a check at room creation, and M_INVALID_ROOM_STATE when the authorization rules reject an event', async () => {
      const { fixture, checks } = await openWithChecks();
      const initial_state = [
        {
          type: 'm.room.power_levels',
          state_key: '',
          content: { users: { [alice]: 0 }, events: { 'm.room.name': 100 } },
        },
      ];
      await assert.rejects(fixture.rooms.creation.create(alice, { name: 'x', initial_state }), {
        errcode: 'M_INVALID_ROOM_STATE',
      });
      const rejection = new MatrixError(403, 'M_FORBIDDEN', 'No rooms today');
      checks.push({ check: async () => rejection });
      await assert.rejects(fixture.rooms.creation.create(alice, {}), (error) => error === rejection);
    });

    it('calls checks in the order in which they were added, until a check rejects the event', async () => {
      const { fixture, checks } = await openWithChecks();
      const roomId = await fixture.room(alice);
      const order: string[] = [];
      const checkNamed = (name: string, rejection?: MatrixError): EventCheck => ({
        async check() {
          order.push(name);
          return rejection;
        },
      });
      checks.push(checkNamed('first'), checkNamed('second', spam), checkNamed('third'));
      await rejectsAsSpam(fixture.say(alice, roomId, 'hello'));
      assert.deepEqual(order, ['first', 'second']);
    });

    it('calls no check for events that are not sent: events for unknown rooms, forbidden events, unchanged state, repeated requests', async () => {
      const { fixture, checks } = await openWithChecks();
      const { rooms } = fixture;
      const roomId = await fixture.room(alice);
      const topic = () =>
        rooms.sending.state(sender(alice), roomId, { type: 'm.room.topic', stateKey: '' }, { topic: 'x' });
      const message = () =>
        rooms.sending.message(
          sender(alice),
          roomId,
          { type: 'm.room.message', content: { body: 'x' } },
          'same',
        );
      const [topicId, messageId] = [await topic(), await message()];
      const { calls, check } = recordingCheck();
      checks.push(check);
      await assert.rejects(fixture.say(alice, '!none:test', 'x'), { errcode: 'M_FORBIDDEN' });
      await assert.rejects(fixture.say(bob, roomId, 'x'), { errcode: 'M_FORBIDDEN' });
      assert.equal(await topic(), topicId);
      assert.equal(await message(), messageId);
      assert.deepEqual(calls, []);
    });

    it('delays no other events while a check runs, and applies the authorization rules again afterwards', async () => {
      const { fixture, checks } = await openWithChecks();
      const roomId = await fixture.room(alice, bob);
      const { promise: checkHeld, resolve: releaseCheck } = Promise.withResolvers<void>();
      const { promise: checkBegun, resolve: markBegun } = Promise.withResolvers<void>();
      checks.push({
        async check({ sender }) {
          if (sender !== bob) return undefined;
          markBegun();
          await checkHeld;
          return undefined;
        },
      });
      const lateMessage = assert.rejects(fixture.say(bob, roomId, 'late'), { errcode: 'M_FORBIDDEN' });
      await checkBegun;
      await fixture.say(alice, roomId, 'meanwhile');
      await fixture.rooms.memberships.kick(alice, roomId, bob);
      releaseCheck();
      await lateMessage;
    });

    it('sends no event when a check throws an unexpected error', async () => {
      const { fixture, checks } = await openWithChecks();
      const roomId = await fixture.room(alice);
      const before = await extremityIds(fixture, roomId);
      checks.push({ check: () => Promise.reject(new Error('the checker is broken')) });
      await assert.rejects(fixture.say(alice, roomId, 'x'), /the checker is broken/);
      assert.deepEqual(await extremityIds(fixture, roomId), before);
    });

    it('calls checks for joins, knocks and invites before the request to another server', async () => {
      const { fixture, checks } = await openWithChecks();
      const { engine } = fixture;
      const roomId = await fixture.room(alice);
      const failsWhenCalled = new Proxy(
        {},
        { get: () => () => assert.fail('another server received a request') },
      );
      const remote = new RemoteMemberships({
        engine,
        placement: engine.placement,
        serverName: 'test',
        peers: failsWhenCalled,
        complexity: failsWhenCalled,
        roomMutex: { run: (_key: string, work: () => unknown) => work() },
      } as never);
      const { calls, check } = recordingCheck(() => true);
      checks.push(check);
      const joinRequest = (content: JsonObject) => ({
        userId: bob,
        roomId: '!far:other.test',
        via: ['other.test'],
        content,
      });
      await rejectsAsSpam(remote.join(joinRequest({ membership: 'join' })));
      await rejectsAsSpam(remote.knock(joinRequest({ membership: 'knock' })));
      const head = await engine.heads.get(roomId);
      const invite = { type: 'm.room.member', stateKey: '@eve:other.test', sender: alice };
      const content = { membership: 'invite' };
      assert.ok(head);
      await rejectsAsSpam(remote.invite(head, { ...invite, content }));
      assert.deepEqual(calls, [
        [
          { type: 'm.room.member', stateKey: bob, sender: bob, content: { membership: 'join' } },
          { roomId: '!far:other.test' },
        ],
        [
          { type: 'm.room.member', stateKey: bob, sender: bob, content: { membership: 'knock' } },
          { roomId: '!far:other.test' },
        ],
        [{ ...invite, content }, { roomId }],
      ]);
    });
  });
});
