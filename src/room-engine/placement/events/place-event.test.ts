import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import {
  ann,
  ben,
  cat,
  type ReferenceDraft,
  ReferenceRoom,
} from '../../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomFact } from '../../stored-event.ts';

const levels = (users: Record<string, number>): Pick<ReferenceDraft, 'type' | 'stateKey' | 'content'> => ({
  type: 'm.room.power_levels',
  stateKey: '',
  content: { users },
});

/** Returns the event ids of the current state, by state map key. */
async function currentState({ engine }: RoomsUnderTest, roomId: string): Promise<Map<string, string>> {
  const head = await engine.heads.get(roomId);
  return new Map([...(head?.state ?? [])].map(([key, { eventId }]) => [key, eventId]));
}

const sorted = (state: ReadonlyMap<string, string>) => [...state].sort(([a], [b]) => (a < b ? -1 : 1));

forSelectedDatabases(import.meta.url, (open) => {
  /** Enters a room, with alice, and collects the facts that are published afterwards. */
  const enterRoom = async (version?: string) => {
    const fixture = await RoomsUnderTest.open(open);
    const room = new ReferenceRoom(version);
    await fixture.engine.placement.enter(room.room, room.join(alice));
    const facts: RoomFact[] = [];
    fixture.engine.stream.subscribe((fact) => facts.push(fact));
    const send = (eventId: string) => fixture.engine.placement.place(room.roomId, room.get(eventId));
    /** Compares the current state with the reference. */
    const check = async (tested = fixture) => {
      const head = await tested.engine.heads.get(room.roomId);
      const forwardExtremities = head?.extremities.map(({ eventId }) => eventId) ?? [];
      assert.deepEqual(
        sorted(await currentState(tested, room.roomId)),
        sorted(room.stateAfter(forwardExtremities)),
        'the current state is the state after the forward extremities',
      );
      return forwardExtremities;
    };
    return { fixture, room, facts, send, check };
  };

  describe('entering a room with its state (Placement.enter)', () => {
    for (const version of ['1', '2', '6', '10', '12']) {
      it(`stores the state of the room and accepts local events after it, also after a restart, in version ${version}`, async () => {
        const { fixture, room, check } = await enterRoom(version);
        await check();
        const head = await fixture.engine.heads.get(room.roomId);
        assert.deepEqual(Object.fromEntries(head?.servers ?? []), {
          'a.example': 1,
          'b.example': 1,
          test: 1,
        });
        assert.equal((await fixture.engine.userRooms.of(alice)).get(room.roomId)?.membership, 'join');
        const messageId = await fixture.say(alice, room.roomId, 'hello');
        assert.ok(await fixture.engine.events.getById(messageId));
        const restarted = await fixture.restart(open);
        await restarted.say(alice, room.roomId, 'hello again');
        assert.deepEqual(
          sorted(await currentState(restarted, room.roomId)),
          sorted(room.stateAfter(room.forwardExtremities)),
        );
      });
    }
  });

  describe('placing a received event (Placement.place)', () => {
    it('places an allowed event on the timeline and applies its state', async () => {
      const { fixture, room, facts, send, check } = await enterRoom();
      const message = await send(room.say(ben));
      const topic = await send(
        room.add({ type: 'm.room.topic', sender: ann, stateKey: '', content: { topic: 'x' } }),
      );
      assert.deepEqual(await check(), [topic.event.eventId]);
      assert.deepEqual(
        facts.map(({ stored, onTimeline, position }) => [stored.nid, onTimeline, position]),
        [message, topic].map(({ nid, stream }) => [nid, true, stream]),
      );
      assert.equal(facts[1]?.stateChanges.length, 1);
      await check(await fixture.restart(open));
    });

    it('rejects an event that the state before it does not allow, and an event with a rejected auth event', async () => {
      const { fixture, room, facts, send, check } = await enterRoom();
      const invalidLevels = room.add({ ...levels({ [ben]: 100 }), sender: ben });
      assert.equal((await send(invalidLevels)).rejected, true);
      // A rejected event may be a previous event of an allowed event, but not an auth event.
      const after = room.add({
        ...levels({ [ben]: 100, [cat]: 100 }),
        sender: ben,
        prev: [invalidLevels],
        auth: [
          ...room
            .get(invalidLevels)
            .event.authEventIds.filter((id) => room.get(id).event.type !== 'm.room.power_levels'),
          invalidLevels,
        ],
      });
      assert.equal((await send(after)).rejected, true);
      const harmless = await send(room.say(ben, [invalidLevels]));
      assert.equal(harmless.rejected, false);
      assert.notEqual(harmless.stream, undefined);
      assert.deepEqual(await check(), [harmless.event.eventId]);
      assert.equal(facts.length, 1);
      await check(await fixture.restart(open));
    });

    it('soft-fails an event that the current state does not allow, and hides it from clients', async () => {
      const { room, facts, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      await send(room.member(ben, 'ban', { sender: ann }));
      const messageOfBanned = await send(room.say(ben, before));
      assert.equal(messageOfBanned.softFailed, true);
      assert.equal(messageOfBanned.stream, undefined);
      assert.equal(facts.length, 1);
      const forwardExtremities = await check();
      assert.ok(!forwardExtremities.includes(messageOfBanned.event.eventId));
    });

    it('removes a forward extremity when a new event follows it through a soft-failed event', async () => {
      const { room, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      const ban = room.member(cat, 'ban', { sender: ann });
      await send(ban);
      const message = room.say(ben, before);
      await send(message);
      const hidden = room.member(cat, 'join', { prev: [message] });
      assert.equal((await send(hidden)).softFailed, true);
      assert.deepEqual((await check()).toSorted(), [ban, message].toSorted());
      const next = room.say(ann, [hidden]);
      await send(next);
      assert.deepEqual((await check()).toSorted(), [ban, next].toSorted());
    });

    it('throws M_FORBIDDEN for a disallowed event, and does not store it, when the option refuse is set', async () => {
      const { fixture, room } = await enterRoom();
      const invalidLevels = room.add({ ...levels({ [ben]: 100 }), sender: ben });
      await assert.rejects(
        fixture.engine.placement.place(room.roomId, room.get(invalidLevels), { refuse: true }),
        {
          errcode: 'M_FORBIDDEN',
        },
      );
      assert.equal(await fixture.engine.events.getById(invalidLevels), undefined);
    });

    it('throws MissingEvents for an event whose previous events are missing', async () => {
      const { fixture, room, send, check } = await enterRoom();
      const [first, second] = [room.say(ann), room.say(ben)];
      await assert.rejects(send(second), { name: 'MissingEvents', eventIds: [first] });
      await send(first);
      await send(second);
      assert.deepEqual(await check(), [second]);
      assert.equal((await fixture.engine.backwardExtremities(room.roomId)).length, 1);
    });
  });

  describe('placing events in a room whose history forks (Placement.place)', () => {
    it("resolves the state: a ban wins over a concurrent join, and the user's membership changes", async () => {
      const { fixture, room, facts, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      const ban = room.member(alice, 'ban', { sender: ann, prev: before });
      const renewal = room.add({
        type: 'm.room.member',
        sender: alice,
        stateKey: alice,
        content: { membership: 'join', displayname: 'Alice' },
        prev: before,
      });
      await send(renewal);
      await send(ban);
      await check();
      assert.deepEqual(
        facts.at(-1)?.membershipChanges.map(({ userId, from, to }) => [userId, from, to]),
        [[alice, 'join', 'ban']],
      );
      assert.equal((await fixture.engine.userRooms.of(alice)).get(room.roomId)?.membership, 'ban');
      const restarted = await fixture.restart(open);
      assert.equal((await restarted.engine.userRooms.of(alice)).get(room.roomId)?.membership, 'ban');
    });

    it("publishes all state changes when resolution changes more than the event's own entry", async () => {
      const { fixture, room, facts, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      const demotion = room.add({ ...levels({ [ann]: 100 }), sender: ann, prev: before });
      const topic = room.add({
        type: 'm.room.topic',
        sender: ben,
        stateKey: '',
        content: { topic: 'mine' },
        prev: before,
      });
      await send(topic);
      await send(demotion);
      await check();
      const last = facts.at(-1);
      assert.deepEqual(last?.stateChanges.map(({ type, event }) => [type, event?.event.eventId]).sort(), [
        ['m.room.power_levels', demotion],
        ['m.room.topic', undefined],
      ]);
      assert.equal(last?.stored.resolves, true);
      await check(await fixture.restart(open));
    });

    it('merges the fork when an event refers to both sides', async () => {
      const { fixture, room, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      const firstLevels = room.add({
        ...levels({ [ann]: 100, [ben]: 50, [cat]: 1 }),
        sender: ann,
        prev: before,
      });
      const secondLevels = room.add({
        ...levels({ [ann]: 100, [ben]: 50, [cat]: 2 }),
        sender: ann,
        prev: before,
      });
      await send(firstLevels);
      await send(secondLevels);
      assert.equal((await check()).length, 2);
      const local = await fixture.say(alice, room.roomId, 'I come after both');
      const head = await fixture.engine.heads.get(room.roomId);
      assert.deepEqual(
        head?.extremities.map(({ eventId }) => eventId),
        [local],
      );
      assert.deepEqual(
        sorted(await currentState(fixture, room.roomId)),
        sorted(room.stateAfter([firstLevels, secondLevels])),
      );
      const merge = room.say(ann, [firstLevels, secondLevels]);
      const stored = await send(merge);
      assert.deepEqual(
        [...((await fixture.engine.stateAt(stored, 'before')) ?? [])].map(([key]) => key).sort(),
        [...room.stateBefore(merge).keys()].sort(),
      );
    });
  });

  describe('placing an event together with the state before it from a remote server (Placement.place)', () => {
    it('replaces a rejected event in the supplied state by the accepted event with the same state key, also after a restart', async () => {
      const { fixture, room } = await enterRoom();
      const powerLevels = stateMapKey('m.room.power_levels', '');
      room.member(cat, 'join');
      const before = room.stateAfter(room.forwardExtremities).get(powerLevels);
      const content = { users: { [cat]: 100 } };
      const invalidLevels = room.add({ type: 'm.room.power_levels', sender: cat, stateKey: '', content });
      const topic = room.add({ type: 'm.room.topic', sender: ann, stateKey: '', content: { topic: 'x' } });
      const claimed = new Map([...room.stateBefore(topic), [powerLevels, invalidLevels]]);
      const { state, authChain } = room.stateAndAuthChain(claimed);
      const { placement } = fixture.engine;
      const outliers = await placement.addOutliers(room.room, [...authChain, ...state]);
      assert.equal(outliers.get(invalidLevels)?.rejected, true);
      const stateBefore = [...claimed.values()];
      const stored = await placement.place(room.roomId, room.get(topic), { stateBefore });
      assert.deepEqual([stored.rejected, stored.softFailed], [false, false]);
      const stateBeforeTopic = await fixture.engine.stateAt(stored, 'before');
      const levels = await fixture.engine.events.get(stateBeforeTopic?.get(powerLevels) ?? 0);
      assert.equal(levels?.event.eventId, before);
      const head = await (await fixture.restart(open)).engine.heads.get(room.roomId);
      assert.equal(head?.entry('m.room.power_levels', '')?.eventId, before);
      assert.equal(head?.entry('m.room.topic', '')?.eventId, topic);
    });

    it('places the event by the state that a remote server supplied, and fills the gap later', async () => {
      const { fixture, room, send, check, facts } = await enterRoom();
      const unreceived = room.member(cat, 'join');
      const topic = room.add({ type: 'm.room.topic', sender: ann, stateKey: '', content: { topic: 'x' } });
      const { state, authChain } = room.stateAndAuthChain(room.stateBefore(topic));
      const { placement } = fixture.engine;
      await placement.addOutliers(room.room, [...authChain, ...state]);
      const stateBefore = state.map(({ event }) => event.eventId);
      const stored = await placement.place(room.roomId, room.get(topic), { stateBefore });
      assert.equal(stored.followsGap, true);
      assert.deepEqual((await fixture.engine.backwardExtremities(room.roomId)).includes(unreceived), true);
      const forwardExtremities = await check();
      assert.ok(forwardExtremities.includes(topic));
      const outlier = await fixture.engine.events.getById(unreceived);
      assert.equal(outlier?.stream, undefined);
      const placedLate = await send(unreceived);
      assert.equal(placedLate.nid, outlier?.nid);
      assert.ok((placedLate.stream ?? 0) > (stored.stream ?? 0));
      assert.deepEqual(
        await check(),
        [topic],
        'the timeline leads from the old to the new forward extremity',
      );
      assert.deepEqual(
        facts.map((fact) => fact.stored.event.eventId),
        [topic, unreceived],
      );
      assert.deepEqual(
        (await fixture.engine.events.between(0, fixture.streams.current, 100))
          .slice(-2)
          .map(({ nid }) => nid),
        [stored.nid, placedLate.nid],
      );
      assert.equal((await fixture.engine.backwardExtremities(room.roomId)).includes(unreceived), false);
      await check(await fixture.restart(open));
    });
  });

  describe('redactions of remote servers', () => {
    it('applies a redaction of a remote server to its target, also when the redaction is placed before its target', async () => {
      const { fixture, room, send } = await enterRoom();
      const message = room.say(ben);
      const redaction = room.add({
        type: 'm.room.redaction',
        sender: ben,
        redacts: message,
        content: { redacts: message },
      });
      await send(message);
      const stored = await send(redaction);
      assert.equal((await fixture.engine.events.getById(message))?.redactedBy, stored.nid);
      const secret = room.say(ben);
      const earlyRedaction = room.add({
        type: 'm.room.redaction',
        sender: ben,
        redacts: secret,
        content: { redacts: secret },
        prev: [redaction],
      });
      const placedRedaction = await send(earlyRedaction);
      assert.equal((await send(secret)).redactedBy, placedRedaction.nid);
      const restarted = await fixture.restart(open);
      assert.equal((await restarted.engine.events.getById(secret))?.redactedBy, placedRedaction.nid);
    });

    it('withholds a redaction of a remote server from clients until its target arrives and allows it', async () => {
      const { fixture, room, send } = await enterRoom();
      await send(room.member(cat, 'join'));
      const redact = (sender: string, redacts: string, prev: string[]) =>
        room.add({ type: 'm.room.redaction', sender, redacts, content: { redacts }, prev });
      const withheld = async (tested: RoomsUnderTest, ids: readonly string[]) => {
        const eventsById = await tested.engine.events.getManyById(ids);
        return ids.map((id) => eventsById.get(id)?.withheld);
      };
      const target = room.say(ann);
      const byCat = redact(cat, target, [target]);
      const byAnn = redact(ann, target, [byCat]);
      const secondByAnn = redact(ann, target, [byAnn]);
      const redactions = [byCat, byAnn, secondByAnn];
      const stateBefore = [...room.stateBefore(target).values()];
      for (const eventId of redactions)
        await fixture.engine.placement.place(room.roomId, room.get(eventId), { stateBefore });
      assert.deepEqual(await withheld(fixture, redactions), [true, true, true]);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await withheld(restarted, redactions), [true, true, true]);
      const placed = await restarted.engine.placement.place(room.roomId, room.get(target));
      assert.equal(placed.redactedBy, (await restarted.engine.events.getById(byAnn))?.nid);
      assert.deepEqual(await withheld(restarted, redactions), [true, false, false]);
      const last = await restarted.restart(open);
      assert.deepEqual(await withheld(last, redactions), [true, false, false]);
    });

    it('does not apply a redaction by a remote user who lacks the power level to redact', async () => {
      const { fixture, room, send } = await enterRoom();
      await send(room.member(cat, 'join'));
      const message = room.say(ann);
      const redaction = room.add({
        type: 'm.room.redaction',
        sender: cat,
        redacts: message,
        content: { redacts: message },
      });
      await send(message);
      await send(redaction);
      assert.equal((await fixture.engine.events.getById(message))?.redactedBy, undefined);
    });
  });
});
