import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { getRoomVersion, receivePdu, roomVersions, stateMapKey } from '../../../protocol/index.ts';
import type { VerifiedEvent } from '../../verified-event.ts';

const strippedState = [{ type: 'm.room.name', state_key: '', sender: ann, content: { name: 'Far away' } }];

/** Returns the event as parsed by a server that assumes another room version. */
const readAs = (versionId: string, { event, json }: VerifiedEvent): VerifiedEvent => ({
  event: receivePdu(event.pdu, getRoomVersion(versionId)!).event,
  json,
});

forSelectedDatabases(import.meta.url, (open) => {
  const versionOf = async ({ engine }: RoomsUnderTest, { roomId }: ReferenceRoom) =>
    (await engine.heads.get(roomId))?.version.id;

  const membershipIn = async ({ engine }: RoomsUnderTest, userId: string, { roomId }: ReferenceRoom) =>
    (await engine.userRooms.of(userId)).get(roomId);

  const membershipEvent = async (fixture: RoomsUnderTest, userId: string, room: ReferenceRoom) => {
    const membership = await membershipIn(fixture, userId, room);
    assert.ok(membership);
    return fixture.engine.events.get(membership.eventNid);
  };

  const checkState = async ({ engine }: RoomsUnderTest, room: ReferenceRoom) => {
    const head = await engine.heads.get(room.roomId);
    const state = [...(head?.state ?? [])].map(([key, { eventId }]) => [key, eventId]).sort();
    assert.deepEqual(state, [...room.stateAfter(room.forwardExtremities)].sort());
    for (const { nid } of head?.state.values() ?? []) {
      const stored = await engine.events.get(nid);
      assert.equal(stored?.event.version, room.version);
      assert.equal(stored?.outOfBand, false);
    }
  };

  describe('a room with an unverified version', () => {
    for (const claimed of ['3', '8', '11']) {
      it(`enters a room in version 10, which its resident server states, although an invite claimed version ${claimed}`, async () => {
        const fixture = await RoomsUnderTest.open(open);
        const room = new ReferenceRoom('10');
        const { placement } = fixture.engine;
        const claim = { roomId: room.roomId, version: getRoomVersion(claimed)! };
        const claimedRoom = new ReferenceRoom(claimed);
        const claimedInvite = claimedRoom.get(claimedRoom.member(alice, 'invite', { sender: ann }));
        const pdu = { ...claimedInvite.event.pdu, room_id: room.roomId };
        const invite = { event: receivePdu(pdu, claim.version).event, json: JSON.stringify(pdu) };
        await placement.addOutOfBand(claim, invite, { state: strippedState });
        assert.equal((await membershipEvent(fixture, alice, room))?.event.version.id, claimed);
        await placement.enter(room.room, room.join(bob));
        const checkRoom = async (tested: RoomsUnderTest) => {
          assert.equal(await versionOf(tested, room), '10');
          await checkState(tested, room);
          assert.equal((await membershipIn(tested, alice, room))?.membership, 'leave');
        };
        await checkRoom(fixture);
        const restarted = await fixture.restart(open);
        await checkRoom(restarted);
        await restarted.say(bob, room.roomId, 'hello');
        assert.ok(
          await restarted.engine.events.getOutOfBand(
            (await restarted.engine.heads.get(room.roomId))!.roomNid,
            invite.event.eventId,
          ),
        );
      });
    }

    it('stores invites that claim different versions, each parsed by the version that it claims, also after a restart', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom('10');
      const versions = [...roomVersions.values()].filter(({ roomId }) => roomId === 'origin');
      const users = versions.map(({ id }) => `@user${id}:test`);
      for (const [index, version] of versions.entries()) {
        const claimedRoom = new ReferenceRoom(version.id);
        const claimedInvite = claimedRoom.get(claimedRoom.member(users[index]!, 'invite', { sender: ann }));
        const pdu = { ...claimedInvite.event.pdu, room_id: room.roomId };
        const event = { event: receivePdu(pdu, version).event, json: JSON.stringify(pdu) };
        await fixture.engine.placement.addOutOfBand({ roomId: room.roomId, version }, event, {
          state: strippedState,
        });
      }
      const checkRoom = async (tested: RoomsUnderTest) => {
        for (const [index, version] of versions.entries()) {
          const stored = await membershipEvent(tested, users[index]!, room);
          assert.equal(stored?.event.version, version);
          assert.equal(stored?.event.stateKey, users[index]);
        }
      };
      await checkRoom(fixture);
      await checkRoom(await fixture.restart(open));
    });

    it('enters a room although an invite in its state arrived before with a wrong version', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { placement, events } = fixture.engine;
      const room = new ReferenceRoom('9');
      const inviteId = room.member(alice, 'invite', { sender: ann });
      const wrong = readAs('10', room.get(inviteId));
      assert.equal(wrong.event.eventId, inviteId);
      await placement.addOutOfBand({ roomId: room.roomId, version: wrong.event.version }, wrong, {
        state: strippedState,
      });
      // A look-up by event id does not find the out-of-band event.
      assert.equal(await events.getById(inviteId), undefined);
      await placement.enter(room.room, room.join(bob));
      const checkRoom = async (tested: RoomsUnderTest) => {
        await checkState(tested, room);
        const stored = await membershipEvent(tested, alice, room);
        assert.deepEqual([stored?.event.eventId, stored?.event.version.id], [inviteId, '9']);
        assert.equal((await membershipIn(tested, alice, room))?.membership, 'invite');
      };
      await checkRoom(fixture);
      const restarted = await fixture.restart(open);
      await checkRoom(restarted);
      const join = room.join(alice);
      await restarted.engine.placement.place(room.roomId, join.event);
      await checkState(restarted, room);
    });

    it('drops the outliers of a failed attempt to enter the room with a wrong version', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { placement, events } = fixture.engine;
      const room = new ReferenceRoom('9');
      // From version 10 on, power levels must be integers, so an event with a string as a level is rejected.
      const users = { [ann]: '100' };
      const levelsId = room.add({
        type: 'm.room.power_levels',
        sender: ann,
        stateKey: '',
        content: { users },
      });
      const validJoin = room.join(alice);
      const asVersion10 = (verified: readonly VerifiedEvent[]) =>
        verified.map((event) => readAs('10', event));
      const [create, ...otherEvents] = asVersion10(validJoin.state);
      const claim = { roomId: room.roomId, version: getRoomVersion('10')! };
      const failing = {
        event: readAs('10', validJoin.event),
        state: otherEvents,
        authChain: [create!, ...asVersion10(validJoin.authChain)],
      };
      await assert.rejects(placement.enter(claim, failing), { errcode: 'M_FORBIDDEN' });
      assert.equal((await events.getById(levelsId))?.rejected, true);
      await placement.enter(room.room, validJoin);
      const checkRoom = async (tested: RoomsUnderTest) => {
        await checkState(tested, room);
        assert.equal((await tested.engine.events.getById(levelsId))?.rejected, false);
        const head = await tested.engine.heads.get(room.roomId);
        assert.equal(head?.state.get(stateMapKey('m.room.power_levels', ''))?.eventId, levelsId);
        assert.equal(await versionOf(tested, room), '9');
      };
      await checkRoom(fixture);
      const restarted = await fixture.restart(open);
      await checkRoom(restarted);
      await restarted.say(alice, room.roomId, 'here');
    });

    it('once the room has been entered, rejects with M_FORBIDDEN invites and joins that claim another version', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { placement } = fixture.engine;
      const room = new ReferenceRoom('9');
      await placement.enter(room.room, room.join(alice));
      const leave = room.member(alice, 'leave');
      await placement.place(room.roomId, room.get(leave));
      const claim = { roomId: room.roomId, version: getRoomVersion('10')! };
      const invite = readAs('10', room.get(room.member(bob, 'invite', { sender: ann })));
      await assert.rejects(placement.addOutOfBand(claim, invite, { state: strippedState }), {
        errcode: 'M_FORBIDDEN',
      });
      const { event, ...rest } = room.join(alice);
      await assert.rejects(placement.enter(claim, { event: readAs('10', event), ...rest }), {
        errcode: 'M_FORBIDDEN',
      });
      assert.equal(await versionOf(fixture, room), '9');
      await placement.enter(room.room, room.join(alice));
      await checkState(fixture, room);
    });
  });

  describe('an out-of-band membership event', () => {
    it('stores an out-of-band membership beside an event of another room that has the same id', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { placement } = fixture.engine;
      // In versions 1 and 2 the server of the sender chooses event ids, and it may choose the same id for two events.
      const [room, impostor] = [new ReferenceRoom('1'), new ReferenceRoom('1')];
      const event = room.get(room.member('@evil:e.example', 'join'));
      const pdu = {
        ...impostor.get(impostor.member(alice, 'invite', { sender: ann })).event.pdu,
        event_id: event.event.eventId,
      };
      const invite = { event: receivePdu(pdu, impostor.version).event, json: JSON.stringify(pdu) };
      await placement.addOutOfBand(impostor.room, invite, { state: strippedState });
      await placement.enter(room.room, room.join(bob));
      await checkState(fixture, room);
      assert.equal((await membershipIn(fixture, alice, impostor))?.membership, 'invite');
      assert.equal((await membershipEvent(fixture, alice, impostor))?.event.roomId, impostor.roomId);
    });

    it('does not restore an invite that is repeated after the room was entered and left', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { placement } = fixture.engine;
      const room = new ReferenceRoom();
      const invite = room.get(room.member(alice, 'invite', { sender: ann }));
      await placement.addOutOfBand(room.room, invite, { state: strippedState });
      await placement.enter(room.room, room.join(alice));
      await placement.place(room.roomId, room.get(room.member(alice, 'leave')));
      await placement.addOutOfBand(room.room, invite, { state: strippedState });
      assert.equal((await membershipIn(fixture, alice, room))?.membership, 'leave');
    });
  });
});
