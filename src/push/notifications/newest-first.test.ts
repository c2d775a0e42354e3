import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RoomReader, StoredEvent, UserRoom } from '../../room-engine/index.ts';
import { NewestFirst } from './newest-first.ts';

interface Page {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
}

/** Opens the events of rooms; position `p` is in room `p % rooms`, which the user joined before its first event. */
async function openEvents(rooms: number, positions: number, invites: readonly number[] = []) {
  /** The ids of the rooms whose head was loaded. */
  const loaded: string[] = [];
  /** The number of events of each page that was read. */
  const pages: number[] = [];
  const room = (roomNid: number, membership: 'join' | 'invite', stream: number): [string, UserRoom] => [
    `!${roomNid}`,
    { roomId: `!${roomNid}`, roomNid, membership, eventNid: stream, stream, forgotten: false },
  ];
  const ofUser = [
    ...Array.from({ length: rooms }, (_, index) => room(index, 'join', 0)),
    ...invites.map((position) => room(1_000 + position, 'invite', position)),
  ];
  const event = (stream: number) => ({ nid: stream, stream, event: {} }) as unknown as StoredEvent;
  const engine = {
    userRooms: { of: async () => new Map(ofUser) },
    heads: {
      get: async (roomId: string) => {
        loaded.push(roomId);
        return { roomNid: Number(roomId.slice(1)) };
      },
    },
    events: {
      get: async (nid: number) => event(nid),
      newestPositions: async (nids: readonly number[]) =>
        new Map(nids.map((nid) => [nid, nid + rooms * Math.floor((positions - nid) / rooms)])),
      timeline: async (roomNid: number, { after, before, limit }: Page) => {
        const found: StoredEvent[] = [];
        for (let position = before - 1; position > after && found.length < limit; position--)
          if (position <= positions && position % rooms === roomNid && !invites.includes(position))
            found.push(event(position));
        pages.push(found.length);
        return found;
      },
    },
  } as unknown as RoomReader;
  const events = await NewestFirst.open(engine, '@alice:test', positions + 1, async () => true);
  const take = async (count: number) => {
    const taken: number[] = [];
    for (let next = await events.next(); next; next = await events.next()) {
      taken.push(next.stored.stream!);
      if (taken.length === count) break;
    }
    return taken;
  };
  return { events, take, loaded, pages };
}

describe('NewestFirst', () => {
  it('returns each event of all rooms once, newest first, with invites in between', async () => {
    const { take, events } = await openEvents(7, 200, [50, 199]);
    assert.deepEqual(
      await take(Number.POSITIVE_INFINITY),
      Array.from({ length: 200 }, (_, index) => 200 - index),
    );
    assert.equal(events.position, 1);
  });

  it('reads only the rooms that have one of the returned events', async () => {
    const { take, loaded, pages, events } = await openEvents(1_000, 30_000);
    assert.deepEqual(
      await take(20),
      Array.from({ length: 20 }, (_, index) => 30_000 - index),
    );
    assert.ok(loaded.length <= 21, `${loaded.length} rooms`);
    assert.ok(Math.max(...pages) <= 5, `${pages}`);
    assert.ok(events.loadedCount <= 105, `${events.loadedCount} events`);
  });
});
