import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ben, cat, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import type { RoomFact } from '../../stored-event.ts';
import type { VerifiedEvent } from '../../verified-event.ts';

const isMember = ({ event }: VerifiedEvent) => event.type === 'm.room.member';

forSelectedDatabases(import.meta.url, (open) => {
  /**
   * Joins alice to a room with omit_members: her server receives only the members that are needed.
   * @param prepare changes the room before alice joins; unless `isReceived`, the resident server has not received
   * these changes
   */
  const joinWithPartialState = async (
    prepare: (room: ReferenceRoom, fixture: RoomsUnderTest) => unknown = () => undefined,
    { isReceived = true } = {},
  ) => {
    const fixture = await RoomsUnderTest.open(open);
    const room = new ReferenceRoom();
    const forwardExtremities = [...room.forwardExtremities];
    await prepare(room, fixture);
    const entry = room.join(alice, isReceived ? room.forwardExtremities : forwardExtremities);
    const partialInfo = { servers: ['a.example', 'b.example'], from: 'a.example' };
    const state = entry.state.filter((verified) => !isMember(verified));
    const needed = new Set(entry.event.event.authEventIds);
    const authEventsOfState = new Set(state.flatMap(({ event }) => event.authEventIds));
    const chain = [...entry.authChain, ...entry.state].filter(
      ({ event }) =>
        !state.some((verified) => verified.event.eventId === event.eventId) &&
        (needed.has(event.eventId) || authEventsOfState.has(event.eventId)),
    );
    const authEventsWithChains = room.stateAndAuthChain(
      new Map(chain.map(({ event }) => [event.eventId, event.eventId])),
    );
    await fixture.engine.placement.enter(room.room, {
      event: entry.event,
      state,
      authChain: [...authEventsWithChains.state, ...authEventsWithChains.authChain],
      partial: partialInfo,
    });
    /** Supplies the state before the join: all of it, or all but the events of a user whose keys are missing. */
    const complete = async (tested = fixture, { withoutKeysOf }: { withoutKeysOf?: string } = {}) => {
      const fullState = room.stateAndAuthChain(room.stateBefore(entry.event.event.eventId));
      const isKnown = ({ event }: VerifiedEvent) => event.sender !== withoutKeysOf;
      const known = fullState.state.filter(isKnown);
      await tested.engine.placement.addOutliers(room.room, [...fullState.authChain, ...known]);
      const stateBefore = known.map(({ event }) => event.eventId);
      const lacksKeys = withoutKeysOf !== undefined;
      await tested.engine.placement.completeState(room.roomId, { stateBefore }, { lacksKeys });
    };
    /** Places a received event of a user whose membership is unknown to this server. */
    const send = async (eventId: string, tested = fixture) => {
      const { event } = room.get(eventId);
      const answer = room.stateAndAuthChain(new Map(event.authEventIds.map((id) => [id, id])));
      await tested.engine.placement.addOutliers(room.room, [...answer.authChain, ...answer.state]);
      return tested.engine.placement.place(room.roomId, room.get(eventId));
    };
    /** Checks that a server has the state of the reference room. @returns the server's forward extremities */
    const check = async (tested: RoomsUnderTest) => {
      const head = await tested.engine.heads.get(room.roomId);
      const forwardExtremities = head?.extremities.map(({ eventId }) => eventId) ?? [];
      const state = [...(head?.state ?? [])].map(([key, { eventId }]) => [key, eventId]).sort();
      assert.deepEqual(state, [...room.stateAfter(forwardExtremities)].sort());
      return forwardExtremities;
    };
    return { fixture, room, partialInfo, entry, complete, send, check };
  };

  describe('a room that was joined with omit_members', () => {
    it('has a state that is reported as partial until it is complete, also after a restart, and can be completed twice', async () => {
      const { fixture, room, partialInfo, entry, complete, check } = await joinWithPartialState();
      const joinEventId = entry.event.event.eventId;
      const expected = [{ ...partialInfo, joinEventId, roomId: room.roomId }];
      assert.deepEqual(await fixture.engine.partialRooms(), expected);
      assert.equal((await fixture.engine.heads.get(room.roomId))?.isPartial, true);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await restarted.engine.partialRooms(), expected);
      const head = await restarted.engine.heads.get(room.roomId);
      assert.equal(head?.isPartial, true);
      assert.deepEqual(head?.partial?.servers, partialInfo.servers);
      await complete(restarted);
      await complete(restarted);
      assert.equal(head?.isPartial, false);
      assert.deepEqual(await restarted.engine.partialRooms(), []);
      await check(restarted);
      const last = await restarted.restart(open);
      assert.equal((await last.engine.heads.get(room.roomId))?.isPartial, false);
      await check(last);
    });

    it('keeps an invite, and accepts events, that depend on a member whose keys are missing, until the state is complete, also after a restart', async () => {
      const { fixture, room, complete, send, check } = await joinWithPartialState(
        async (remoteRoom, { engine }) => {
          remoteRoom.member(cat, 'join');
          const invite = remoteRoom.get(remoteRoom.member(bob, 'invite', { sender: cat }));
          await engine.placement.addOutOfBand(remoteRoom.room, invite, { state: [] });
        },
      );
      const before = await send(room.say(cat));
      await complete(fixture, { withoutKeysOf: cat });
      const after = await send(room.say(cat));
      const restarted = await fixture.restart(open);
      for (const { engine } of [fixture, restarted]) {
        const head = await engine.heads.get(room.roomId);
        assert.deepEqual([head?.isPartial, head?.lacksMembers], [true, false]);
        assert.deepEqual([head?.membership(ben), head?.membership(cat)], ['join', undefined]);
        assert.equal((await engine.userRooms.of(bob)).get(room.roomId)?.membership, 'invite');
        for (const { nid } of [before, after]) assert.equal((await engine.events.get(nid))?.rejected, false);
      }
      await complete(restarted);
      const head = await restarted.engine.heads.get(room.roomId);
      assert.equal(head?.isPartial, false);
      assert.equal((await restarted.engine.userRooms.of(bob)).get(room.roomId)?.membership, 'invite');
      assert.deepEqual(await check(restarted), [after.event.eventId]);
    });

    it('accepts events of omitted members, and corrects the states of these events when the state of the room is complete', async () => {
      const { fixture, room, complete, send, check } = await joinWithPartialState((remoteRoom) =>
        remoteRoom.member(cat, 'join'),
      );
      const facts: RoomFact[] = [];
      const placed = [await send(room.say(cat)), await send(room.say(ben))];
      const topic = { type: 'm.room.topic', sender: ann, stateKey: '', content: { topic: 'x' } };
      placed.push(await send(room.add(topic)));
      for (const stored of placed) assert.deepEqual([stored.rejected, stored.softFailed], [false, false]);
      const local = await fixture.say(alice, room.roomId, 'hello');
      fixture.engine.stream.subscribe((fact) => facts.push(fact));
      const sentMeanwhile = fixture.say(alice, room.roomId, 'while it is completed');
      await complete();
      await sentMeanwhile;
      for (const eventId of [local, await sentMeanwhile]) {
        const stored = await fixture.engine.events.getById(eventId);
        assert.ok(stored);
        room.addExisting({ event: stored.event, json: '' });
      }
      assert.deepEqual(await check(fixture), [await sentMeanwhile]);
      for (const { event } of placed) {
        const stored = await fixture.engine.events.getById(event.eventId);
        assert.ok(stored);
        const state = await fixture.engine.stateAt(stored, 'after');
        assert.deepEqual(
          [...(state?.keys() ?? [])].sort(),
          [...room.stateAfter([event.eventId]).keys()].sort(),
        );
      }
      const fact = facts.find(({ onTimeline }) => !onTimeline);
      assert.deepEqual(
        fact?.membershipChanges.map(({ userId, to }) => [userId, to]).sort(),
        [ann, ben, cat].map((userId) => [userId, 'join']),
      );
      assert.deepEqual(await check(await fixture.restart(open)), [await sentMeanwhile]);
    });

    it('ends invites that are not in the state of the room only when this state is complete', async () => {
      const { fixture, room, complete } = await joinWithPartialState(
        (remoteRoom, { engine }) =>
          engine.placement.addOutOfBand(
            remoteRoom.room,
            remoteRoom.get(remoteRoom.member(bob, 'invite', { sender: ann })),
            {
              state: [],
            },
          ),
        { isReceived: false },
      );
      const membership = async () => (await fixture.engine.userRooms.of(bob)).get(room.roomId)?.membership;
      assert.equal(await membership(), 'invite');
      await complete();
      assert.equal(await membership(), 'leave');
    });

    it('rejects events that the whole state does not allow', async () => {
      const { fixture, room, complete, send, check } = await joinWithPartialState((remoteRoom) => {
        remoteRoom.member(cat, 'join');
        remoteRoom.member(cat, 'ban', { sender: ann });
      });
      // The auth events allow the message of cat, because they are older than her ban, which this server has not
      // received.
      const joinOfCat = [...room.events.values()].find(
        ({ event }) => event.stateKey === cat && event.content['membership'] === 'join',
      )?.event.eventId;
      const [last] = room.forwardExtremities;
      const auth = [...room.stateAfter(room.forwardExtremities)]
        .filter(([key]) => /create|power_levels/.test(key))
        .map(([, eventId]) => eventId);
      const messageOfCat = room.add({
        type: 'm.room.message',
        sender: cat,
        content: { body: 'I am here' },
        auth: [...auth, joinOfCat ?? ''],
      });
      assert.equal(room.rejected.has(messageOfCat), true);
      assert.equal((await send(messageOfCat)).rejected, false);
      await complete();
      const stored = await fixture.engine.events.getById(messageOfCat);
      assert.deepEqual([stored?.rejected, stored?.stream], [true, undefined]);
      assert.deepEqual(await check(fixture), [last]);
      assert.deepEqual(await check(await fixture.restart(open)), [last]);
    });
  });
});
