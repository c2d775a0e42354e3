/**
 * Clients that sync often receive timelines from memory that are shared by all members (the fast path). Each of their
 * answers must equal word for word the answer that is read from the database, and all their answers together must
 * contain what one sync at the end returns.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { isThorough } from '../../../test/support/inputs/thoroughness.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type SyncJson, TestClient } from '../../../test/support/users/test-client.ts';
import { BusyRooms, type BusyStep, busySteps, everyStep } from './test/busy-rooms.ts';
import { FastPath } from './test/fast-path.ts';
import { type ReceivedRoom, ReceivedRooms } from './test/received-rooms.ts';

/** Parameters of a sync. */
interface SyncParameters {
  readonly filter: { readonly room?: Readonly<Record<string, object>>; readonly event_fields?: string[] };
  readonly use_state_after?: boolean;
}

/** Whether the events of an answer, and with them the unread counts, depend on the time of the sync. */
const dependsOnTime = ({ filter }: SyncParameters) =>
  'related_by_rel_types' in (filter.room?.['timeline'] ?? {});

/** Returns the parameters of each client. One client has a small timeline limit, which is soon reached. */
const parametersFor = (dora: TestClient): readonly SyncParameters[] => [
  { filter: {} },
  { filter: { room: { state: { lazy_load_members: true } } } },
  { filter: { room: { state: { lazy_load_members: true, include_redundant_members: true } } } },
  { filter: { room: { timeline: { types: ['m.room.message', 'm.room.member'] } } } },
  { filter: { room: { timeline: { not_senders: [dora.id] } } } },
  { filter: { room: { timeline: { unread_thread_notifications: true } } } },
  { filter: { room: { timeline: { limit: 2 } } } },
  { filter: { room: { ephemeral: { not_types: ['m.typing'] }, timeline: { contains_url: false } } } },
  { filter: { room: { timeline: { related_by_rel_types: ['m.thread', 'm.annotation'] } } } },
  {
    filter: {
      event_fields: [
        'type',
        'content',
        'sender',
        'event_id',
        'origin_server_ts',
        'state_key',
        'unsigned.redacted_because',
      ],
    },
  },
  { filter: { room: { ephemeral: { not_types: ['m.receipt'] } } }, use_state_after: true },
];

/** Number of devices that act in the rooms. */
const peopleCount = 5;

/** Number of clients that sync often, each with parameters of its own. */
const clientCount = 11;

/** A client that syncs often. */
interface Follower {
  readonly parameters: SyncParameters;
  readonly received: ReceivedRooms;
  since: string;
  /** Number of answers with an entry that took the fast path. */
  fastAnswers: number;
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`GET /sync of a client that syncs often, on ${database}`, () => {
    let server: TestServer;
    let fastPath: FastPath;
    /**
     * The devices that act in the rooms. The last two belong to one user, for whom all clients sync: often with the
     * first of the two; with the second only at the end, from a token of the start.
     */
    let people: TestClient[];
    /**
     * The heroes of the rooms; they send nothing. A lazy-loading client receives the membership of a user who is not a
     * hero only when that user sends an event.
     */
    let silent: TestClient[];
    let parameters: readonly SyncParameters[];
    const fastAnswers = Array.from({ length: clientCount }, () => 0);
    before(async () => {
      fastPath = new FastPath();
      server = await startTestServer({ database, config: { presence: { presence: { enabled: false } } } });
      people = await Promise.all(
        ['anna', 'cleo', 'dora', 'ben'].map((name) => TestClient.register(server, name)),
      );
      people.push(await anotherDevice(server, 'ben'));
      silent = await Promise.all(
        ['eve', 'finn', 'gus', 'hal'].map((name) => TestClient.register(server, name)),
      );
      parameters = parametersFor(people[2]!);
      assert.deepEqual([people.length, parameters.length], [peopleCount, clientCount]);
    });
    after(async () => {
      fastPath.stop();
      await server.stop();
    });

    it('returns the same answers from memory as a sync that reads from the database', {
      timeout: 300_000,
    }, async () => {
      await fc.assert(
        fc.asyncProperty(busySteps(peopleCount, clientCount), (steps) => play(steps)),
        {
          numRuns: isThorough ? 15 : 2,
          endOnFailure: true,
          examples: [[everyStep(peopleCount, clientCount)]],
        },
      );
      assert.ok(Math.min(...fastAnswers) > 3, `too few answers took the fast path: ${fastAnswers}`);
    });

    // A client that is not woken waits for longer than this test may last.
    it('returns every message to clients that wait, however many are sent at once', {
      timeout: 190_000,
    }, async () => {
      const speakers = await Promise.all(
        ['ida', 'jon', 'kim'].map((name) => TestClient.register(server, name)),
      );
      const leo = await TestClient.register(server, 'leo');
      const roomId = await leo.createRoom();
      for (const speaker of speakers) await speaker.join(roomId);
      const { next_batch } = await leo.sync();
      /** Syncs until `count` events have been returned. */
      const follow = async (count: number, types: string[]) => {
        const filter = { room: { timeline: { limit: 60, types } } };
        const received: string[] = [];
        for (let since = next_batch; received.length < count; ) {
          const sync = await leo.sync(since, { filter, timeout: 200_000 });
          since = sync.next_batch;
          const { events = [] } = sync.rooms?.join?.[roomId]?.timeline ?? {};
          received.push(...events.map(({ event_id }) => event_id));
        }
        return received;
      };
      // The second client is woken by many events that its filter excludes.
      const following = [follow(60, ['*']), follow(12, ['org.example.rare'])];
      const sending = speakers.map(async (speaker) => {
        const ids: string[] = [];
        for (let round = 0; round < 4; round++) {
          const messages = Array.from({ length: 4 }, (_, index) => speaker.say(roomId, `${round} ${index}`));
          ids.push(...(await Promise.all([...messages, speaker.send(roomId, 'org.example.rare', {})])));
        }
        return ids;
      });
      const sent = (await Promise.all(sending)).flat().sort();
      const [received, rare] = await Promise.all(following);
      assert.deepEqual(received?.toSorted(), sent);
      assert.deepEqual(
        rare,
        received?.filter((id) => rare?.includes(id)),
      );
    });

    const play = async (steps: readonly BusyStep[]) => {
      const rooms = await BusyRooms.open(people, silent);
      const [first, second] = people.slice(-2);
      const began = (await second!.sync()).next_batch;
      const followers = await Promise.all(
        parameters.map(async (parameters): Promise<Follower> => {
          const { next_batch } = await first!.sync(undefined, parameters);
          return { parameters, received: new ReceivedRooms(), since: next_batch, fastAnswers: 0 };
        }),
      );
      for (const step of steps) {
        await rooms.act(step);
        for (const [index, follower] of followers.entries())
          if (step.watchers & (1 << index)) await follow(first!, follower);
      }
      for (const roomId of rooms.rooms) await people[0]!.say(roomId, 'good night');
      for (const [index, follower] of followers.entries()) {
        await follow(first!, follower);
        fastAnswers[index]! += follower.fastAnswers;
        const inOneSync = new ReceivedRooms();
        inOneSync.apply(
          await fastPath.closedFor(() => second!.sync(began, withLongTimeline(follower.parameters))),
        );
        for (const roomId of rooms.rooms) assertSameData(follower, inOneSync, roomId, rooms.everIgnored);
      }
    };

    /**
     * Syncs, and compares an answer of the fast path with the answer for the same range that is read from the database.
     */
    const follow = async (person: TestClient, follower: Follower) => {
      const { since, parameters, received } = follower;
      for (;;) {
        const { answer, fastRooms } = await fastPath.observe(() => person.sync(since, parameters));
        if (fastRooms.size > 0) {
          const fromDatabase = await fastPath.closedFor(() => person.sync(since, parameters));
          if (fromDatabase.next_batch !== answer.next_batch) continue;
          const [actual, expected] = [answer, fromDatabase].map((sync) => comparable(sync, fastRooms));
          assert.deepEqual(actual, expected, JSON.stringify(parameters));
          follower.fastAnswers++;
        }
        received.apply(answer);
        follower.since = answer.next_batch;
        return;
      }
    };
  });
}

async function anotherDevice(server: TestServer, name: string): Promise<TestClient> {
  const identifier = { type: 'm.id.user', user: name };
  const body = { type: 'm.login.password', identifier, password: 'correct horse' };
  const { body: user } = await server.api('POST', '/_matrix/client/v3/login', { body });
  return new TestClient(server, {
    userId: String(user['user_id']),
    deviceId: String(user['device_id']),
    token: String(user['access_token']),
  });
}

const withLongTimeline = (parameters: SyncParameters): SyncParameters => ({
  ...parameters,
  filter: {
    ...parameters.filter,
    room: { ...parameters.filter.room, timeline: { ...parameters.filter.room?.['timeline'], limit: 100 } },
  },
});

/**
 * Returns an answer without the parts that may differ when the request is repeated: the ages of events, and
 * the state of rooms whose entry was read. With lazily loaded members, `state` may repeat a member whose
 * change the first answer contained.
 */
function comparable(answer: SyncJson, fastRooms: ReadonlySet<string>): unknown {
  const copy: SyncJson = JSON.parse(
    JSON.stringify(answer, (key, value) => (key === 'age' ? undefined : value)),
  );
  const rooms = Object.entries(copy.rooms?.join ?? {}).map(([roomId, room]) => [
    roomId,
    fastRooms.has(roomId) ? room : { ...room, state: undefined },
  ]);
  return { ...copy, rooms: { ...copy.rooms, join: Object.fromEntries(rooms) } };
}

/**
 * Asserts that a client has received the same data in many syncs as another client in one sync, except data that depend
 * on the time of the sync: for example the events of users who were ignored for a while.
 */
function assertSameData(
  { received, parameters }: Follower,
  inOneSync: ReceivedRooms,
  roomId: string,
  everIgnored: ReadonlySet<string>,
): void {
  const [dataOfMany, dataOfOne] = [received.in(roomId), inOneSync.in(roomId)];
  const label = JSON.stringify(parameters);
  if (!dependsOnTime(parameters)) {
    assertSameEvents(dataOfMany, dataOfOne, label, everIgnored);
    assert.deepEqual(dataOfMany.unread, dataOfOne.unread, label);
    assert.deepEqual(dataOfMany.unreadThreads, dataOfOne.unreadThreads, label);
  }
  const lasting = ({ receipts }: ReceivedRoom) =>
    [...receipts].filter(([key]) => !everIgnored.has(JSON.parse(key)[0])).sort();
  assert.deepEqual(lasting(dataOfMany), lasting(dataOfOne), label);
  const typing = ({ typingUsers: typists }: ReceivedRoom) =>
    typists.filter((userId) => !everIgnored.has(userId));
  assert.deepEqual(typing(dataOfMany), typing(dataOfOne), label);
}

function assertSameEvents(
  dataOfMany: ReceivedRoom,
  dataOfOne: ReceivedRoom,
  label: string,
  everIgnored: ReadonlySet<string>,
): void {
  const lasting = ({ events }: ReceivedRoom) => events.filter(({ sender }) => !everIgnored.has(sender));
  const [eventsOfMany, eventsOfOne] = [lasting(dataOfMany), lasting(dataOfOne)];
  const length = Math.min(eventsOfMany.length, eventsOfOne.length);
  if (!dataOfMany.isLimited && !dataOfOne.isLimited)
    assert.equal(eventsOfMany.length, eventsOfOne.length, label);
  assert.ok(length > 0);
  for (let index = 1; index <= length; index++) {
    const [fromManySyncs, fromOneSync] = [eventsOfMany.at(-index)!, eventsOfOne.at(-index)!];
    assert.deepEqual(
      [fromManySyncs.event_id, fromManySyncs.type, fromManySyncs.sender],
      [fromOneSync.event_id, fromOneSync.type, fromOneSync.sender],
      label,
    );
    if (!fromOneSync.unsigned?.['redacted_because'])
      assert.deepEqual(fromManySyncs.content, fromOneSync.content, label);
  }
}
