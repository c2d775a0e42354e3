import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ben, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomFact } from '../../stored-event.ts';

const strippedState = [{ type: 'm.room.name', state_key: '', sender: ann, content: { name: 'Far away' } }];

const topic = { type: 'm.room.topic', sender: ann, stateKey: '' };

forSelectedDatabases(import.meta.url, (open) => {
  const membershipIn = async ({ engine }: RoomsUnderTest, userId: string, { roomId }: ReferenceRoom) =>
    (await engine.userRooms.of(userId)).get(roomId);

  const stateOf = async ({ engine }: RoomsUnderTest, { roomId }: ReferenceRoom) => {
    const head = await engine.heads.get(roomId);
    return [...(head?.state ?? [])].map(([key, { eventId }]) => [key, eventId]).sort();
  };

  const expectedState = (room: ReferenceRoom) => [...room.stateAfter(room.forwardExtremities)].sort();

  describe('storing an out-of-band invite (Placement.addOutOfBand)', () => {
    it('stores the invite with its stripped state, also across a restart, until the user declines it, and then ignores repetitions of it', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const facts: RoomFact[] = [];
      fixture.engine.stream.subscribe((fact) => facts.push(fact));
      const invite = room.get(room.member(alice, 'invite', { sender: ann }));
      await fixture.engine.placement.addOutOfBand(room.room, invite, { state: strippedState });
      await fixture.engine.placement.addOutOfBand(room.room, invite, { state: strippedState });
      assert.deepEqual(
        facts.map(({ onTimeline, membershipChanges }) => [onTimeline, membershipChanges.map(({ to }) => to)]),
        [[false, ['invite']]],
      );
      const restarted = await fixture.restart(open);
      const storedInvite = await membershipIn(restarted, alice, room);
      assert.equal(storedInvite?.membership, 'invite');
      assert.ok(storedInvite);
      assert.deepEqual(await restarted.engine.strippedState(alice, storedInvite), strippedState);
      assert.deepEqual(await restarted.engine.events.between(0, restarted.streams.current, 100), []);
      const leave = room.get(room.member(alice, 'leave'));
      await restarted.engine.placement.addOutOfBand(room.room, leave, { state: [] });
      const afterLeave = await membershipIn(restarted, alice, room);
      assert.equal(afterLeave?.membership, 'leave');
      assert.ok(afterLeave);
      assert.equal(await restarted.engine.strippedState(alice, afterLeave), undefined);
      // The inviting server did not receive the response, and repeats its request.
      await restarted.engine.placement.addOutOfBand(room.room, invite, { state: strippedState });
      assert.equal((await membershipIn(restarted, alice, room))?.membership, 'leave');
      const newInvite = room.get(room.member(alice, 'invite', { sender: ann }));
      await restarted.engine.placement.addOutOfBand(room.room, newInvite, { state: strippedState });
      assert.equal((await membershipIn(restarted, alice, room))?.membership, 'invite');
    });

    it('rejects invites whose target is a remote user, events that are not membership events, and invites to rooms that this server is in', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const { placement } = fixture.engine;
      const remoteInvite = room.get(room.member('@dan:d.example', 'invite', { sender: ann }));
      await assert.rejects(placement.addOutOfBand(room.room, remoteInvite, { state: [] }), {
        errcode: 'M_FORBIDDEN',
      });
      await assert.rejects(placement.addOutOfBand(room.room, room.get(room.say(ann)), { state: [] }), {
        errcode: 'M_BAD_JSON',
      });
      await placement.enter(room.room, room.join(alice));
      const invite = room.get(room.member(bob, 'invite', { sender: ann }));
      await assert.rejects(placement.addOutOfBand(room.room, invite, { state: [] }), {
        errcode: 'M_FORBIDDEN',
      });
    });

    it('makes the invite an event of the room when the room is entered', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      await fixture.engine.placement.addOutOfBand(
        room.room,
        room.get(room.member(bob, 'invite', { sender: ann })),
        { state: strippedState },
      );
      const invite = room.member(alice, 'invite', { sender: ann });
      const outOfBandInvite = await fixture.engine.placement.addOutOfBand(room.room, room.get(invite), {
        state: strippedState,
      });
      await fixture.engine.placement.enter(room.room, room.join(alice));
      assert.deepEqual(await stateOf(fixture, room), expectedState(room));
      const stored = await fixture.engine.events.getById(invite);
      assert.ok(stored && stored.nid > outOfBandInvite.nid);
      // The out-of-band copy stays in its table, so that a repetition is recognised.
      assert.equal((await fixture.engine.events.get(outOfBandInvite.nid))?.outOfBand, true);
      const auth = await fixture.engine.events.getManyById(stored.event.authEventIds);
      assert.equal(auth.size, stored.event.authEventIds.length);
      for (const { nid } of auth.values()) assert.ok(nid < stored.nid);
      const membershipOfBob = await membershipIn(fixture, bob, room);
      assert.ok(membershipOfBob);
      assert.equal((await fixture.engine.events.get(membershipOfBob.eventNid))?.event.stateKey, bob);
      assert.equal(await fixture.engine.strippedState(bob, membershipOfBob), undefined);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await stateOf(restarted, room), expectedState(room));
      assert.deepEqual(await membershipIn(restarted, bob, room), membershipOfBob);
    });
  });

  describe('an invite that is not in the state of the room', () => {
    it('ends when another local user enters the room', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { placement } = fixture.engine;
      const room = new ReferenceRoom();
      const forwardExtremities = [...room.forwardExtremities];
      const invite = room.get(room.member(bob, 'invite', { sender: ann }));
      await placement.addOutOfBand(room.room, invite, { state: strippedState });
      const facts: RoomFact[] = [];
      fixture.engine.stream.subscribe((fact) => facts.push(fact));
      // The resident server does not know the invite.
      await placement.enter(room.room, room.join(alice, forwardExtremities));
      const changes = facts.flatMap(({ membershipChanges }) => membershipChanges);
      const changesOfBob = changes.filter(({ userId }) => userId === bob);
      assert.deepEqual(
        changesOfBob.map(({ from, to }) => [from, to]),
        [['invite', 'leave']],
      );
      const check = async (tested: RoomsUnderTest) => {
        const afterLeave = await membershipIn(tested, bob, room);
        assert.equal(afterLeave?.membership, 'leave');
        assert.ok(afterLeave);
        assert.equal(await tested.engine.strippedState(bob, afterLeave), undefined);
      };
      await check(fixture);
      await check(await fixture.restart(open));
    });
  });

  describe('entering a room (Placement.enter)', () => {
    it('replaces the old state of a room that all local users had left', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const { placement } = fixture.engine;
      await placement.enter(room.room, room.join(alice));
      room.add({ ...topic, content: { topic: 'old' } });
      await placement.place(room.roomId, room.get(room.forwardExtremities[0]!));
      const leaveId = room.member(alice, 'leave');
      await placement.place(room.roomId, room.get(leaveId));
      assert.equal((await fixture.engine.heads.get(room.roomId))?.servers.has('test'), false);
      // This server receives none of these events.
      room.add({ ...topic, content: { topic: 'new' } });
      room.member(ben, 'leave');
      const facts: RoomFact[] = [];
      fixture.engine.stream.subscribe((fact) => facts.push(fact));
      const stored = await placement.enter(room.room, room.join(alice));
      assert.deepEqual(await stateOf(fixture, room), expectedState(room));
      assert.equal(stored.followsGap, true);
      assert.deepEqual(facts[0]?.membershipChanges.map(({ userId, from, to }) => [userId, from, to]).sort(), [
        [alice, 'leave', 'join'],
        [ben, 'join', 'leave'],
      ]);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await stateOf(restarted, room), expectedState(room));
      await restarted.say(alice, room.roomId, 'back');
    });

    it('places the join like any event while a local user is in the room', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const { placement } = fixture.engine;
      await placement.enter(room.room, room.join(alice));
      const unreceived = room.say(ann);
      await placement.enter(room.room, room.join(bob));
      assert.deepEqual(await stateOf(fixture, room), expectedState(room));
      assert.deepEqual((await fixture.engine.backwardExtremities(room.roomId)).includes(unreceived), true);
    });

    it('leaves the room without state and the user without a membership when entering fails', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const { placement } = fixture.engine;
      const entry = room.join(alice);
      const [create, ...stateWithoutCreate] = entry.state;
      assert.ok(create);
      await assert.rejects(
        placement.enter(room.room, { ...entry, state: stateWithoutCreate, authChain: [] }),
        {
          name: 'MissingEvents',
        },
      );
      await assert.rejects(
        placement.enter(room.room, { ...entry, state: stateWithoutCreate, authChain: [create] }),
        {
          errcode: 'M_FORBIDDEN',
        },
      );
      const roomWithBan = new ReferenceRoom();
      roomWithBan.member(bob, 'ban', { sender: ann });
      await assert.rejects(placement.enter(roomWithBan.room, roomWithBan.join(bob)), {
        errcode: 'M_FORBIDDEN',
      });
      for (const roomId of [room.roomId, roomWithBan.roomId]) {
        const head = await fixture.engine.heads.get(roomId);
        assert.equal(head?.state.size ?? 0, 0);
        assert.equal(head?.chain.id, undefined);
      }
      assert.equal(await membershipIn(fixture, alice, room), undefined);
      assert.equal(await membershipIn(fixture, bob, roomWithBan), undefined);
      await placement.enter(room.room, entry);
      assert.deepEqual(await stateOf(fixture, room), expectedState(room));
    });
  });

  describe('the auth chain of a state (RoomReader.authChain)', () => {
    it('returns the auth events of a state and the auth events of these events, lowest nid first, or only the highest nids', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      room.add({
        type: 'm.room.power_levels',
        sender: ann,
        stateKey: '',
        content: { users: { [ann]: 100 } },
      });
      await fixture.engine.placement.enter(room.room, room.join(alice));
      const head = await fixture.engine.heads.get(room.roomId);
      assert.ok(head);
      const nids = [...head.state.values()].map(({ nid }) => nid);
      const chain = await fixture.engine.authChain(nids);
      assert.deepEqual(
        chain,
        chain.toSorted((a, b) => a - b),
      );
      const events = await fixture.engine.events.getMany(chain);
      const ids = [...events.values()].map(({ event }) => event.eventId).sort();
      const expected = new Set<string>();
      const pending = [...head.state.values()].map(({ eventId }) => eventId);
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        for (const eventId of room.get(next).event.authEventIds) {
          if (!expected.has(eventId)) pending.push(eventId);
          expected.add(eventId);
        }
      }
      assert.deepEqual(ids, [...expected].sort());
      assert.deepEqual(await fixture.engine.authChain(nids, 2), chain.slice(-2));
    });
  });

  describe('the template of an event for a remote server (Placement.eventTemplate)', () => {
    it('returns an event without hashes and signatures, and throws M_FORBIDDEN for a disallowed event and M_NOT_FOUND for an unknown room', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const { placement, heads } = fixture.engine;
      const draft = {
        type: 'm.room.member',
        stateKey: ben,
        sender: ben,
        content: { membership: 'join' },
      };
      const { event } = await placement.eventTemplate(roomId, draft);
      const head = await heads.get(roomId);
      assert.deepEqual(
        event['prev_events'],
        head?.extremities.map(({ eventId }) => eventId),
      );
      const auth = ['m.room.create', 'm.room.power_levels', 'm.room.join_rules'];
      assert.deepEqual(
        (event['auth_events'] as string[]).toSorted(),
        auth.map((type) => head?.state.get(stateMapKey(type, ''))?.eventId).sort(),
      );
      assert.ok(!('hashes' in event) && !('signatures' in event));
      await assert.rejects(placement.eventTemplate(roomId, { ...draft, content: { membership: 'invite' } }), {
        errcode: 'M_FORBIDDEN',
      });
      await assert.rejects(placement.eventTemplate('!nowhere:test', draft), { errcode: 'M_NOT_FOUND' });
    });
  });
});
