import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
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

/** Number of generated rooms; `PLACED_ROOMS=2000` for a long run. */
const runs = Number(process.env['PLACED_ROOMS'] ?? 12);

const users = [ann, ben, cat, alice];

/** Generates a random operation: the numbers choose sender, target, kind of event and previous events. */
const attempt = fc.record({
  who: fc.nat(3),
  whom: fc.nat(3),
  what: fc.nat(9),
  level: fc.constantFrom(0, 25, 50, 75, 100),
  /** The previous events, each as the number of newer events in the room. */
  after: fc.array(fc.nat(7), { minLength: 1, maxLength: 3 }),
  /** Error of the sender's clock in milliseconds. */
  lag: fc.integer({ min: -5_000, max: 5_000 }),
});

type Attempt = typeof attempt extends fc.Arbitrary<infer T> ? T : never;

function draftOf(room: ReferenceRoom, { who, whom, what, level, after, lag }: Attempt): ReferenceDraft {
  const [sender, target] = [users[who]!, users[whom]!];
  const recent = [...room.events.keys()].slice(-8);
  const prev = [...new Set(after.map((back) => recent[Math.max(0, recent.length - 1 - back)]!))];
  const common = { sender, prev, ts: 2_000_000 + lag };
  const member = (stateKey: string, membership: string): ReferenceDraft => ({
    ...common,
    type: 'm.room.member',
    stateKey,
    content: { membership },
  });
  const privileged = room.version.privilegedCreators;
  const userLevels: Record<string, number> = { [ann]: 100, [ben]: 50, [target]: level };
  // Since room version 12, power levels must not name a creator.
  if (privileged) delete userLevels[ann];
  const drafts: ReferenceDraft[] = [
    member(sender, 'join'),
    member(sender, 'leave'),
    member(target, 'leave'),
    member(target, 'ban'),
    member(target, 'invite'),
    { ...common, type: 'm.room.power_levels', stateKey: '', content: { users: userLevels } },
    {
      ...common,
      type: 'm.room.join_rules',
      stateKey: '',
      content: { join_rule: level > 50 ? 'invite' : 'public' },
    },
    { ...common, type: 'm.room.topic', stateKey: '', content: { topic: String(lag) } },
    { ...common, type: 'm.room.message', content: { body: String(lag) } },
    { ...common, type: 'm.room.name', stateKey: '', content: { name: String(lag) } },
  ];
  return drafts[what]!;
}

/**
 * Orders the events so that each comes after its previous events and its auth events; `choices` select one of the
 * possible orders.
 */
function deliveryOrder(
  room: ReferenceRoom,
  eventIds: readonly string[],
  choices: readonly number[],
): string[] {
  const remaining = new Set(eventIds);
  const order: string[] = [];
  for (let turn = 0; remaining.size > 0; turn++) {
    const deliverable = [...remaining].filter((eventId) => {
      const { prevEventIds, authEventIds } = room.get(eventId).event;
      return [...prevEventIds, ...authEventIds].every((before) => !remaining.has(before));
    });
    const next = deliverable[(choices[turn % choices.length] ?? 0) % deliverable.length]!;
    remaining.delete(next);
    order.push(next);
  }
  return order;
}

const sorted = (state: Iterable<readonly [string, string]>) =>
  [...state].sort(([a], [b]) => (a < b ? -1 : 1));

async function stateIn({ engine }: RoomsUnderTest, roomId: string): Promise<[string, string][]> {
  const head = await engine.heads.get(roomId);
  return sorted([...(head?.state ?? [])].map(([key, { eventId }]) => [key, eventId] as const)) as [
    string,
    string,
  ][];
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('state of a room with random forks', () => {
    it('equals the state that the specification defines, for any order of arrival of the events', async () => {
      const servers = [await RoomsUnderTest.open(open), await RoomsUnderTest.open(open)];
      let forks = 0;
      let resolved = 0;
      const checkConvergence = async (
        version: string,
        attempts: readonly Attempt[],
        orders: readonly number[][],
      ) => {
        const room = new ReferenceRoom(version);
        const entry = room.join(alice);
        const before = new Set(room.events.keys());
        for (const attempt of attempts) {
          const draft = draftOf(room, attempt);
          // The servers have no history before the join, so that no event forks the room there.
          if (draft.prev?.every((eventId) => before.has(eventId) && eventId !== room.forwardExtremities[0])) {
            room.add({ ...draft, prev: [entry.event.event.eventId] });
          } else room.add(draft);
        }
        const newEvents = [...room.events.keys()].filter((eventId) => !before.has(eventId));
        const afterGap = newEvents.filter((eventId) =>
          room
            .get(eventId)
            .event.prevEventIds.some((id) => before.has(id) && id !== entry.event.event.eventId),
        );
        const states: [string, string][][] = [];
        for (const [index, fixture] of servers.entries()) {
          const { placement } = fixture.engine;
          await placement.enter(room.room, entry);
          for (const eventId of deliveryOrder(room, newEvents, orders[index] ?? [0])) {
            const options = afterGap.includes(eventId)
              ? { stateBefore: await storeStateBefore(fixture, room, eventId) }
              : {};
            await placement.place(room.roomId, room.get(eventId), options);
          }
          const head = await fixture.engine.heads.get(room.roomId);
          const ends = head?.extremities.map(({ eventId }) => eventId) ?? [];
          if (ends.length > 1) forks++;
          const state = await stateIn(fixture, room.roomId);
          assert.deepEqual(state, sorted(room.stateAfter(ends)), 'the current state');
          states.push(state);
          for (const eventId of newEvents) {
            const stored = await fixture.engine.events.getById(eventId);
            assert.ok(stored);
            assert.equal(stored.rejected, room.rejected.has(eventId), 'rejected');
            if (stored.resolves) resolved++;
            const stateAfterEvent = await fixture.engine.stateAt(stored, 'after');
            const ids = await fixture.engine.events.getMany(stateAfterEvent?.values() ?? []);
            const after = [...(stateAfterEvent ?? [])].map(
              ([key, nid]) => [key, ids.get(nid)?.event.eventId ?? ''] as const,
            );
            assert.deepEqual(sorted(after), sorted(room.stateAfter([eventId])), 'the state after an event');
          }
          await checkMembers(fixture, room.roomId);
        }
      };
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom('1', '2', '6', '10', '11', '12'),
          fc.array(attempt, { minLength: 5, maxLength: 40 }),
          fc.array(fc.array(fc.nat(20), { minLength: 5, maxLength: 20 }), { minLength: 2, maxLength: 2 }),
          checkConvergence,
        ),
        { numRuns: runs },
      );
      assert.ok(forks > 0 && resolved > 0, 'at least one room forked, and at least one state was resolved');
      // After a restart the stored state equals the state in memory.
      for (const fixture of servers) {
        const rooms = [
          ...new Set(
            (await fixture.engine.events.betweenWithBackfill(0, fixture.streams.current, 100_000)).map(
              ({ stored }) => stored.event.roomId,
            ),
          ),
        ];
        const states = new Map<string, [string, string][]>();
        for (const roomId of rooms) states.set(roomId, await stateIn(fixture, roomId));
        const restarted = await fixture.restart(open);
        for (const [roomId, state] of states) assert.deepEqual(await stateIn(restarted, roomId), state);
      }
    });
  });
});

/** Stores the state before an event, as a remote server would supply it. @returns the event ids */
async function storeStateBefore(
  fixture: RoomsUnderTest,
  room: ReferenceRoom,
  eventId: string,
): Promise<string[]> {
  const { state, authChain } = room.stateAndAuthChain(room.stateBefore(eventId));
  await fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]);
  return state.map(({ event }) => event.eventId);
}

/** Checks that members and servers of the head match the state. */
async function checkMembers({ engine }: RoomsUnderTest, roomId: string): Promise<void> {
  const head = await engine.heads.get(roomId);
  assert.ok(head);
  const servers = new Map<string, number>();
  for (const userId of users) {
    const entry = head.state.get(stateMapKey('m.room.member', userId));
    assert.equal(head.membership(userId), entry?.membership);
    const userRoom = (await engine.userRooms.of(userId)).get(roomId);
    if (entry) assert.deepEqual([userRoom?.membership, userRoom?.eventNid], [entry.membership, entry.nid]);
    if (entry?.membership !== 'join') continue;
    const server = userId.slice(userId.indexOf(':') + 1);
    servers.set(server, (servers.get(server) ?? 0) + 1);
  }
  assert.deepEqual([...head.servers].sort(), [...servers].sort());
}
