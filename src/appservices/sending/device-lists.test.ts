import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Appservice } from '../../appservice-registry/index.ts';
import type { EntryKind } from '../tables.ts';
import { type DeviceListDeps, deviceListsOf, entriesWithFewMembers } from './device-lists.ts';

const service = {
  id: 'bridge',
  mayActAs: (userId: string) => userId === '@bot:test',
} as unknown as Appservice;

/**
 * Returns `lists`, which calls `deviceListsOf` for a service that receives the events of the room `!shared` only, and
 * `lookups`: the rooms whose services were looked up.
 * @param roomsOf the joined rooms of each user
 */
function openRooms(roomsOf: Readonly<Record<string, readonly string[]>>) {
  const lookups: string[] = [];
  const members = ['@bot:test', ...Object.keys(roomsOf)].map((userId) => [userId, 'join'] as const);
  const deps = {
    engine: {
      heads: { get: async () => ({ members: new Map([...members, ['@gone:far', 'leave']]) }) },
      userRooms: { joinedIds: async (ids: string[]) => new Map(ids.map((id) => [id, roomsOf[id] ?? []])) },
    },
    rooms: {
      servicesOf: async (roomId: string) => {
        lookups.push(roomId);
        return roomId === '!shared' ? [service] : [];
      },
      isCached: (roomId: string) => roomId === '!shared',
    },
  } as unknown as DeviceListDeps;
  const lists = (...entries: readonly (readonly [kind: EntryKind, subject: string])[]) =>
    deviceListsOf(
      deps,
      service,
      entries.map(([kind, subject]) => ({ kind, subject })),
    );
  return { lists, lookups };
}

describe('deviceListsOf', () => {
  const { lists, lookups } = openRooms({ '@ann:far': ['!other', '!shared'], '@ben:far': ['!other'] });

  it('lists a user as left only if the service shares no room with the user now, whatever the order of the entries', async () => {
    for (const userId of ['@ann:far', '@ben:far']) {
      const [joined, left] = [['device list', userId] as const, ['unshared user', userId] as const];
      const isSharing = userId === '@ann:far';
      const expected = isSharing ? { changed: [userId], left: [] } : { changed: [], left: [userId] };
      assert.deepEqual(await lists(joined, left), expected);
      assert.deepEqual(await lists(left, joined), expected);
      assert.deepEqual(await lists(left), isSharing ? { changed: [], left: [] } : expected);
      assert.deepEqual(await lists(joined), { changed: [userId], left: [] });
    }
  });

  it('expands a room to its joined members, except users of the service, and then reads the services of each room of these members once, cached rooms first', async () => {
    assert.deepEqual(await lists(['device list', '!other']), { changed: ['@ann:far', '@ben:far'], left: [] });
    lookups.length = 0;
    assert.deepEqual(await lists(['unshared user', '!other']), { changed: [], left: ['@ben:far'] });
    assert.deepEqual(lookups, ['!other', '!shared', '!other']);
  });

  it('lists no user as left after one user of the service has left a room whose events the service still receives', async () => {
    assert.deepEqual(await lists(['unshared user', '!shared']), { changed: [], left: [] });
  });

  it('loads at most 1,000 rooms, and does not list users in `left` whose rooms were not loaded', async () => {
    const users = Array.from({ length: 300 }, (_, n) => [
      `@u${n}:far`,
      [1, 2, 3, 4, 5].map((i) => `!${n}-${i}`),
    ]);
    const largeRoom = openRooms(Object.fromEntries(users));
    const { left } = await largeRoom.lists(['unshared user', '!other']);
    assert.equal(largeRoom.lookups.filter((roomId) => roomId !== '!other').length, 1_000);
    assert.equal(left.length, 200);
  });
});

describe('entriesWithFewMembers', () => {
  it('ends a transaction after all entries of the position at which its rooms together exceed 10,000 joined members, and counts each room once', async () => {
    const heads = { get: async () => ({ memberCount: () => 4_000 }) };
    const deps = { engine: { heads } } as unknown as DeviceListDeps;
    const entry = (position: number, kind: EntryKind, subject: string) => ({ position, kind, subject });
    const entries = [
      entry(1, 'device list', '!a'),
      entry(2, 'unshared user', '!a'),
      entry(3, 'event', ''),
      entry(3, 'device list', '@ann:far'),
      entry(4, 'device list', '!b'),
      entry(5, 'device list', '!c'),
      entry(5, 'unshared user', '!d'),
      entry(6, 'event', ''),
      entry(7, 'device list', '!e'),
    ];
    assert.deepEqual(await entriesWithFewMembers(deps, entries), entries.slice(0, 7));
    assert.deepEqual(await entriesWithFewMembers(deps, entries.slice(7)), entries.slice(7));
    assert.deepEqual(await entriesWithFewMembers(deps, []), []);
  });
});
