import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Type } from 'typebox';
import { forSelectedDatabases, type OpenDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest, RoutesUnderTest } from '../../../test/support/rooms/rooms.ts';
import { AccountData, accountDataMigrations } from '../../account-data/index.ts';
import { noFilter } from '../../filters/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { jsonFacts, Stream, type StreamWriter } from '../../kernel/streams/index.ts';
import { PrejoinStateKeys } from '../../room-engine/index.ts';
import { defineExtension, type SyncSource } from '../../sync-contract/index.ts';
import { openSync, slidingSyncMigrations, slidingSyncRoutes, syncRoutes } from '../index.ts';

interface Mood {
  readonly userId: string;
  readonly roomId: string;
  readonly mood: string;
}

/**
 * A source of data that the sync slice does not know: the last mood in each room. Records which of its methods are
 * called.
 */
class MoodSource implements SyncSource {
  readonly name = 'moods';
  readonly calls: string[] = [];
  readonly #stream = new Stream<Mood>('moods', jsonFacts());
  readonly #streams: StreamWriter;
  readonly #rooms = new Map<string, { readonly text: string; readonly position: number }>();

  constructor(streams: StreamWriter) {
    this.#streams = streams;
    this.#stream.subscribe(({ roomId, mood }, position) => {
      const text = JSON.stringify({ type: 'org.example.mood', content: { mood } });
      this.#rooms.set(roomId, { text, position });
    });
  }

  set(mood: Mood): void {
    this.#streams.announce(this.#stream, mood);
  }

  readonly follow: SyncSource['follow'] = (feeds) => feeds.followRooms(this.#stream, ({ roomId }) => roomId);

  readonly ephemeral: NonNullable<SyncSource['ephemeral']> = {
    type: 'org.example.mood',
    mayHaveChanged: () => true,
    since: (_userId, roomId, { after, upTo }) => {
      this.calls.push('since');
      const last = this.#rooms.get(roomId);
      return last && last.position > after && last.position <= upTo ? [last.text] : [];
    },
    initial: (_userId, roomIds) => {
      this.calls.push('initial');
      const moods = roomIds.flatMap((roomId) => {
        const last = this.#rooms.get(roomId);
        return last ? [[roomId, [last.text]] as const] : [];
      });
      return new Map(moods);
    },
    extension: {
      name: 'org.example.moods',
      inRooms: (_userId, rooms) => {
        this.calls.push('extension');
        const moods = rooms.flatMap(({ roomId, after }) => {
          const last = this.#rooms.get(roomId);
          return last && last.position > (after ?? 0) ? [[roomId, last.text] as const] : [];
        });
        return new Map(moods);
      },
    },
  };

  readonly device: NonNullable<SyncSource['device']> = {
    extension: 'org.example.device',
    isQuiet: () => true,
    constant: ({ deviceId }) => `,"org.example.device":${JSON.stringify(deviceId ?? null)}`,
    fields: async (device) => ({ text: this.device.constant(device) as string, hasNewData: false }),
  };

  readonly extension = defineExtension({
    name: 'org.example.count',
    request: Type.Object({ unit: Type.String() }),
    answer: async (_userId, _range, { unit }) => ({
      text: JSON.stringify({ count: `${this.#rooms.size} ${unit}` }),
      hasNewData: true,
    }),
  });
}

async function openMoods(open: OpenDatabase) {
  const fixture = await RoomsUnderTest.open(open, [...accountDataMigrations, ...slidingSyncMigrations]);
  const { rooms, streams, clock, caches, database } = fixture;
  const moods = new MoodSource(streams);
  const sync = openSync({
    rooms,
    streams,
    clock,
    caches,
    database,
    randomness: systemRandomness,
    sources: [moods],
    accountData: new AccountData({ database, streams }),
    prejoinStateKeys: new PrejoinStateKeys([]),
    excludedRooms: new Set(),
    invitePolicy: { decide: async () => 'allow' },
    maxTimelineEvents: 100,
    answerCacheDuration: 0,
  });
  const setPresence = () => () => undefined;
  const routes = [
    ...syncRoutes(sync.sync, () => noFilter, setPresence, 100),
    ...slidingSyncRoutes(sync, setPresence),
  ];
  const http = await RoutesUnderTest.start(routes, clock);
  const roomId = await fixture.room(alice, bob);
  /** Syncs as Bob. @returns the answer, and the moods of the room in the answer */
  const next = async (since?: unknown, timeout = 0) => {
    const query = since === undefined ? '' : `?since=${since}&timeout=${timeout}`;
    const { body } = await http.call(bob, 'GET', `/sync${query}`);
    const joined = (body['rooms'] as { join?: Record<string, RoomJson> } | undefined)?.join?.[roomId];
    return { body, moods: joined?.ephemeral.events.map(({ content }) => content['mood']) };
  };
  return { moods, http, roomId, next };
}

interface RoomJson {
  readonly ephemeral: { readonly events: readonly { content: Record<string, unknown> }[] };
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('syncs with a source that the code of the sync slice does not name', () => {
    it('includes the data of any sync source in the first and the following classic syncs, and answers a waiting sync when the source has new data', async (test) => {
      const { moods, http, roomId, next } = await openMoods(open);
      test.after(() => http.stop());
      moods.set({ userId: alice, roomId, mood: 'glad' });
      const first = await next();
      assert.deepEqual(first.moods, ['glad']);
      assert.equal(first.body['org.example.device'], 'DEVICE');
      const waiting = next(first.body['next_batch'], 100_000);
      setImmediate(() => moods.set({ userId: alice, roomId, mood: 'sad' }));
      assert.deepEqual((await waiting).moods, ['sad']);
    });

    it('does not call a sync source that has nothing new', async (test) => {
      const { moods, http, next } = await openMoods(open);
      test.after(() => http.stop());
      const { body } = await next();
      moods.calls.length = 0;
      const quiet = await next(body['next_batch']);
      assert.equal(quiet.body['org.example.device'], 'DEVICE', 'every answer has the constant fields');
      assert.deepEqual(moods.calls, []);
    });

    it('includes the extensions of any sync source in sliding sync, and checks their requests by the schemas of the source', async (test) => {
      const { moods, http, roomId } = await openMoods(open);
      test.after(() => http.stop());
      moods.set({ userId: alice, roomId, mood: 'glad' });
      const path = '/org.matrix.simplified_msc3575/sync';
      const request = (extensions: object) => {
        const lists = { all: { ranges: [[0, 9]], timeline_limit: 1, required_state: [] } };
        return http.call(bob, 'POST', path, { lists, extensions }, '/unstable');
      };
      const { body } = await request({
        'org.example.moods': { enabled: true },
        'org.example.device': { enabled: true },
        'org.example.count': { enabled: true, unit: 'rooms' },
      });
      assert.deepEqual(body['extensions'], {
        'org.example.device': { 'org.example.device': 'DEVICE' },
        'org.example.moods': {
          rooms: { [roomId]: { type: 'org.example.mood', content: { mood: 'glad' } } },
        },
        'org.example.count': { count: '1 rooms' },
      });
      assert.equal((await request({ 'org.example.count': { enabled: true, unit: 7 } })).status, 400);
    });
  });
});
