import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { openContents } from '../../../test/support/databases/database-contents.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { type ClientEventJson, enc, TestClient } from '../../../test/support/users/test-client.ts';
import type { RoomsConfig } from '../config.ts';

const day = 24 * 3_600_000;

/** A job that covers all rooms and never runs during a test. */
const yearsLaterJob = { shortest_max_lifetime: null, longest_max_lifetime: null, interval: 10_000 * day };

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('retention of messages', () => {
    let server: TestServer;
    let clock: ManualClock;
    let anna: TestClient;
    let ben: TestClient;
    let clockTimer: NodeJS.Timeout | undefined;
    afterEach(async () => {
      await server.stop();
      clearInterval(clockTimer);
    });

    const start = async (retention: Partial<RoomsConfig['retention']>) => {
      clock = manualClock();
      // The clock advances in real time, so that retries after write conflicts run.
      clockTimer = setInterval(() => clock.advance(5), 5);
      const unset = { allowed_lifetime_min: null, allowed_lifetime_max: null, purge_jobs: null };
      const noDefault = { default_policy: { min_lifetime: null, max_lifetime: null } };
      const config = { rooms: { retention: { enabled: true, ...unset, ...noDefault, ...retention } } };
      server = await startTestServer({ database: kind, clock, config });
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
    };

    /** Creates a room of Anna and Ben. @param max_lifetime of its policy in milliseconds; absent: it has no policy */
    const createRoom = async (max_lifetime?: number) => {
      const policy = [{ type: 'm.room.retention', content: { max_lifetime } }];
      const initial_state = max_lifetime === undefined ? [] : policy;
      const roomId = await anna.createRoom({ preset: 'public_chat', initial_state });
      await ben.join(roomId);
      return roomId;
    };

    const contentsOf = async <T>(
      read: (rows: (table: string) => Promise<Record<string, unknown>[]>) => Promise<T>,
    ) => {
      const contents = await openContents(server.databaseOptions);
      try {
        return await read(async (table) => (await contents.rows(table)) as Record<string, unknown>[]);
      } finally {
        await contents.close();
      }
    };

    /** Advances the clock, and waits until all jobs that are due then have run. */
    const advance = async (milliseconds: number) => {
      clock.advance(milliseconds);
      await eventually('the end of all jobs that are due', () =>
        contentsOf(async (rows) =>
          (await rows('jobs')).every(
            ({ state, lease_until, run_at }) =>
              state !== 'waiting' || (Number(lease_until) === 0 && Number(run_at) > clock.now()),
          ),
        ),
      );
    };

    /** Returns for each of the events whether it is on disk. */
    const areStored = (...eventIds: string[]) =>
      contentsOf(async (rows) => {
        const ids = new Set((await rows('events')).map(({ event_id }) => event_id));
        return eventIds.map((id) => ids.has(id));
      });

    const bodiesIn = (events: unknown) =>
      (events as readonly ClientEventJson[])
        .map(({ content }) => content['body'])
        .filter((body) => body !== undefined);

    const messages = async (user: TestClient, roomId: string) => {
      const query = { dir: 'f', limit: 100 };
      return bodiesIn((await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query))['chunk']);
    };

    it('hides from all client APIs the messages that are older than the max_lifetime of their room, before the messages are deleted', async () => {
      await start({ purge_jobs: [yearsLaterJob] });
      const admin = await registerAdmin(server);
      const roomId = await createRoom(day);
      const path = `/rooms/${enc(roomId)}`;
      const { next_batch: since } = await ben.sync();
      const sent = clock.now();
      const root = await anna.say(roomId, `old ${ben.id}`);
      const related = (rel_type: string, event_id: string, body: string) =>
        anna.send(roomId, 'm.room.message', {
          msgtype: 'm.text',
          body,
          'm.relates_to': { rel_type, event_id },
        });
      await related('m.thread', root, 'old reply');
      await anna.setState(roomId, 'm.room.topic', { topic: 'stays' });
      clock.advance(day / 2);
      await anna.say(roomId, 'half');
      const youngId = await anna.say(roomId, 'young');
      const answers = async () => {
        const get = async (user: TestClient, endpoint: string, query = {}) =>
          (await user.request('GET', `/_matrix/client${endpoint}`, undefined, query)).raw;
        const search = { search_categories: { room_events: { search_term: 'old' } } };
        const list = { timeline_limit: 20, required_state: [], ranges: [[0, 9]] };
        const sliding = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
        const adminGet = async (rest: string) =>
          (await admin.request('GET', `/_synapse/admin/v1${path}/${rest}`, undefined)).raw;
        return {
          'initial sync': JSON.stringify((await ben.sync()).rooms),
          'incremental sync': JSON.stringify((await ben.sync(since)).rooms),
          messages: await get(ben, `/v3${path}/messages`, { dir: 'b', limit: 50 }),
          context: await get(ben, `/v3${path}/context/${enc(youngId)}`, { limit: 20 }),
          event: await get(ben, `/v3${path}/event/${enc(root)}`),
          relations: await get(ben, `/v1${path}/relations/${enc(root)}`),
          threads: await get(ben, `/v1${path}/threads`),
          notifications: await get(ben, '/v3/notifications'),
          search: (await ben.call('POST', '/search', search)).raw,
          'sliding sync': (await ben.request('POST', sliding, { lists: { all: list } })).raw,
          events: await get(ben, '/v3/events', { from: since }),
          initialSync: await get(ben, '/v3/initialSync', { limit: 20 }),
          'initialSync of the room': await get(ben, `/v3${path}/initialSync`, { limit: 20 }),
          'messages for administrators': await adminGet('messages?dir=b&limit=50'),
          'context for administrators': await adminGet(`context/${enc(youngId)}?limit=20`),
        };
      };
      /** Returns the id of the first event that was sent at the time of the message `root` or after it. */
      const nearestEventId = async () => {
        const query = { ts: sent, dir: 'f' };
        return (await ben.request('GET', `/_matrix/client/v1${path}/timestamp_to_event`, undefined, query))
          .body['event_id'];
      };
      for (const [name, text] of Object.entries(await answers()))
        assert.match(text, /old (reply|@ben)/, name);
      assert.equal(await nearestEventId(), root);
      const syncWithHighlight = await ben.sync();
      assert.equal(syncWithHighlight.rooms?.join?.[roomId]?.unread_notifications?.['highlight_count'], 1);
      clock.advance(day / 2);
      for (const [name, text] of Object.entries(await answers())) {
        assert.doesNotMatch(text, /old (reply|@ben)/, name);
        if (!['event', 'relations', 'threads', 'notifications', 'search'].includes(name))
          assert.match(text, /half.*young|young.*half/s, name);
      }
      assert.equal((await ben.call('GET', `${path}/context/${enc(root)}`)).status, 404);
      assert.notEqual(await nearestEventId(), root);
      assert.equal((await ben.sync()).rooms?.join?.[roomId]?.unread_notifications?.['highlight_count'], 0);
      assert.match(JSON.stringify((await ben.sync()).rooms), /stays/, 'state events do not expire');
      assert.deepEqual(await areStored(root), [true]);
      // A shorter lifetime takes effect at once, and so does the removal of the policy.
      await anna.setState(roomId, 'm.room.retention', { max_lifetime: 1 });
      clock.advance(100);
      assert.deepEqual(await messages(ben, roomId), []);
      await anna.setState(roomId, 'm.room.retention', {});
      assert.deepEqual(await messages(ben, roomId), [`old ${ben.id}`, 'old reply', 'half', 'young']);
      const invalid = [{ max_lifetime: '1d' }, { min_lifetime: -1 }, { min_lifetime: 2, max_lifetime: 1 }];
      for (const content of invalid) {
        const answer = await anna.call('PUT', `${path}/state/m.room.retention/`, content);
        assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_BAD_JSON'], answer.raw);
      }
    });

    it('deletes expired messages once a day [option: retention.enabled]. Rooms without a lifetime have the default max_lifetime [option: retention.default_policy.max_lifetime], the default min_lifetime has no effect [option: retention.default_policy.min_lifetime], shorter lifetimes count as the minimum [option: retention.allowed_lifetime_min], longer ones as the maximum [option: retention.allowed_lifetime_max]', async () => {
      await start({
        default_policy: { min_lifetime: 30 * day, max_lifetime: 3 * day },
        allowed_lifetime_min: 2 * day,
        allowed_lifetime_max: 4 * day,
      });
      const shortLifetimeRoom = await createRoom(day);
      const defaultRoom = await createRoom();
      const longLifetimeRoom = await createRoom(100 * day);
      const oldIds: string[] = [];
      for (const roomId of [shortLifetimeRoom, defaultRoom, longLifetimeRoom])
        oldIds.push(await anna.say(roomId, 'old'));
      const topic = await anna.setState(shortLifetimeRoom, 'm.room.topic', { topic: 'old' });
      const name = await anna.setState(shortLifetimeRoom, 'm.room.name', { name: 'secret' });
      const redaction = await anna.redact(shortLifetimeRoom, name);
      const assertStored = async (...expected: boolean[]) => {
        const shown = [shortLifetimeRoom, defaultRoom, longLifetimeRoom].map(async (room) =>
          (await messages(ben, room)).includes('old'),
        );
        assert.deepEqual([await areStored(...oldIds), await Promise.all(shown)], [expected, expected]);
      };
      await advance(day);
      const youngIds: string[] = [];
      for (const roomId of [shortLifetimeRoom, defaultRoom, longLifetimeRoom])
        youngIds.push(await anna.say(roomId, 'young'));
      await assertStored(true, true, true);
      // The next jobs run a day after the last jobs, not a day after the restart.
      clock.advance(day / 2);
      await server.restart();
      await advance(day / 2);
      await assertStored(false, true, true);
      assert.deepEqual(await areStored(topic, name, redaction), [true, true, false]);
      assert.doesNotMatch((await ben.call('GET', `/rooms/${enc(shortLifetimeRoom)}/state`)).raw, /secret/);
      await advance(day);
      await assertStored(false, false, true);
      await advance(day);
      await assertStored(false, false, false);
      // The last message is a forward extremity: no user receives it, but it stays until a new event follows.
      assert.deepEqual([await areStored(youngIds[0]!), await messages(ben, shortLifetimeRoom)], [[true], []]);
      await anna.say(shortLifetimeRoom, 'next');
      await advance(day);
      assert.deepEqual(
        [await areStored(youngIds[0]!), await messages(ben, shortLifetimeRoom)],
        [[false], ['next']],
      );
    });

    it('deletes at the interval of a job [option: retention.purge_jobs[].interval] in rooms whose max_lifetime is above its lower bound [option: retention.purge_jobs[].shortest_max_lifetime] and not above its upper bound [option: retention.purge_jobs[].longest_max_lifetime]', async () => {
      const hour = day / 24;
      const purge_jobs = [
        { shortest_max_lifetime: null, longest_max_lifetime: 2 * hour, interval: hour },
        { shortest_max_lifetime: 2 * hour, longest_max_lifetime: 4 * hour, interval: 12 * hour },
      ];
      await start({ purge_jobs });
      const ids: string[] = [];
      const lifetimes = [2 * hour, 2 * hour + 1, 4 * hour, 4 * hour + 1, undefined];
      const uncoveredRooms: string[] = [];
      for (const lifetime of lifetimes) {
        const roomId = await createRoom(lifetime);
        ids.push(await anna.say(roomId, 'old'));
        await anna.say(roomId, 'newer');
        if (lifetime === undefined || lifetime > 4 * hour) uncoveredRooms.push(roomId);
      }
      const steps: boolean[][] = [];
      for (let hours = 0; hours < 13; hours++) {
        await advance(hour);
        if (hours === 0 || hours === 3 || hours === 12) steps.push(await areStored(...ids));
      }
      assert.deepEqual(steps, [
        [true, true, true, true, true],
        [false, true, true, true, true],
        [false, false, false, true, true],
      ]);
      // In rooms outside of all ranges no messages are deleted, but users do not receive the expired messages either.
      assert.deepEqual(await messages(ben, uncoveredRooms[0]!), []);
      assert.deepEqual(await messages(ben, uncoveredRooms[1]!), ['old', 'newer']);
    });
  });
});
