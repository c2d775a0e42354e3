/**
 * Whoever follows closely is answered in a shorter way than others. It says neither more nor less than the long way,
 * whatever people do: word for word where both are asked the same, and all in all when somebody comes back at the end.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { serverDatabases } from '../../../test/support/databases/databases.ts';
import { isThorough } from '../../../test/support/inputs/thoroughness.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type SyncJson, TestClient } from '../../../test/support/users/test-client.ts';
import { BusyRooms, type BusyStep, busySteps, everyStep } from './test/busy-rooms.ts';
import { FastPath } from './test/fast-path.ts';
import { type ReceivedRoom, ReceivedRooms } from './test/received-rooms.ts';

/** What a client asks for besides the rest. */
interface Manner {
  readonly filter: { readonly room?: Readonly<Record<string, object>>; readonly event_fields?: string[] };
  readonly use_state_after?: boolean;
}

/** Whether it depends on when one asks which events are told, and so whether counts are. */
const changesItsMind = ({ filter }: Manner) => 'related_by_rel_types' in (filter.room?.['timeline'] ?? {});

/** Ways of syncing. The timeline of one of them is soon limited. */
const mannersFor = (dora: TestClient): readonly Manner[] => [
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

const [peopleCount, mannersCount] = [5, 11];

/** A client that keeps up with what is said. */
interface Follower {
  readonly manner: Manner;
  readonly told: ReceivedRooms;
  since: string;
  /** Answers that it has got the short way. */
  prompt: number;
}

for (const database of serverDatabases(import.meta.url)) {
  describe(`who follows closely, on ${database}`, () => {
    let server: TestServer;
    let way: FastPath;
    /** The last two are devices of one user, of whom the first follows closely and the other comes back at the end. */
    let people: TestClient[];
    /** So many that a client that loads members lazily is not told of the others before they speak. */
    let silent: TestClient[];
    let manners: readonly Manner[];
    const prompt = Array.from({ length: mannersCount }, () => 0);
    before(async () => {
      way = new FastPath();
      server = await startTestServer({ database, config: { presence: { presence: { enabled: false } } } });
      people = await Promise.all(
        ['anna', 'cleo', 'dora', 'ben'].map((name) => TestClient.register(server, name)),
      );
      people.push(await anotherDevice(server, 'ben'));
      silent = await Promise.all(
        ['eve', 'finn', 'gus', 'hal'].map((name) => TestClient.register(server, name)),
      );
      manners = mannersFor(people[2]!);
      assert.deepEqual([people.length, manners.length], [peopleCount, mannersCount]);
    });
    after(async () => {
      way.leave();
      await server.stop();
    });

    it('is told what others are told', { timeout: 300_000 }, async () => {
      await fc.assert(
        fc.asyncProperty(busySteps(peopleCount, mannersCount), (steps) => play(steps)),
        {
          numRuns: isThorough ? 15 : 3,
          endOnFailure: true,
          examples: [[everyStep(peopleCount, mannersCount)]],
        },
      );
      assert.ok(Math.min(...prompt) > 3, `the short way was hardly gone: ${prompt}`);
    });

    // Who is not woken for something waits for longer than this test may last.
    it('is woken for everything, however much comes at once', { timeout: 100_000 }, async () => {
      const speakers = await Promise.all(
        ['ida', 'jon', 'kim'].map((name) => TestClient.register(server, name)),
      );
      const leo = await TestClient.register(server, 'leo');
      const roomId = await leo.createRoom();
      for (const speaker of speakers) await speaker.join(roomId);
      const { next_batch } = await leo.sync();
      /** What somebody is told who waits until it is as many. */
      const follow = async (count: number, types: string[]) => {
        const filter = { room: { timeline: { limit: 60, types } } };
        const told: string[] = [];
        for (let since = next_batch; told.length < count; ) {
          const sync = await leo.sync(since, { filter, timeout: 200_000 });
          since = sync.next_batch;
          const { events = [] } = sync.rooms?.join?.[roomId]?.timeline ?? {};
          told.push(...events.map(({ event_id }) => event_id));
        }
        return told;
      };
      // One of them has to look again and again at what is not for them.
      const following = [follow(60, ['*']), follow(12, ['org.example.rare'])];
      const saying = speakers.map(async (speaker) => {
        const ids: string[] = [];
        for (let round = 0; round < 4; round++) {
          const others = Array.from({ length: 4 }, (_, index) => speaker.say(roomId, `${round} ${index}`));
          ids.push(...(await Promise.all([...others, speaker.send(roomId, 'org.example.rare', {})])));
        }
        return ids;
      });
      const said = (await Promise.all(saying)).flat().sort();
      const [all, rare] = await Promise.all(following);
      assert.deepEqual(all?.toSorted(), said);
      assert.deepEqual(
        rare,
        all?.filter((id) => rare?.includes(id)),
      );
    });

    const play = async (steps: readonly BusyStep[]) => {
      const rooms = await BusyRooms.open(people, silent);
      const [first, second] = people.slice(-2);
      const began = (await second!.sync()).next_batch;
      const followers = await Promise.all(
        manners.map(async (manner): Promise<Follower> => {
          const { next_batch } = await first!.sync(undefined, manner);
          return { manner, told: new ReceivedRooms(), since: next_batch, prompt: 0 };
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
        prompt[index]! += follower.prompt;
        const late = new ReceivedRooms();
        late.apply(await way.closedFor(() => second!.sync(began, withLongTimeline(follower.manner))));
        for (const roomId of rooms.rooms) agree(follower, late, roomId, rooms.everIgnored);
      }
    };

    /** When an answer came the short way, the long way is asked as well, until nothing has happened in between. */
    const follow = async (person: TestClient, follower: Follower) => {
      const { since, manner, told } = follower;
      for (;;) {
        const taken = way.taken;
        const answer = await person.sync(since, manner);
        if (way.taken > taken) {
          const long = await way.closedFor(() => person.sync(since, manner));
          if (long.next_batch !== answer.next_batch) continue;
          assert.deepEqual(withoutAges(answer), withoutAges(long), JSON.stringify(manner));
          follower.prompt++;
        }
        told.apply(answer);
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

const withLongTimeline = (manner: Manner): Manner => ({
  ...manner,
  filter: {
    ...manner.filter,
    room: { ...manner.filter.room, timeline: { ...manner.filter.room?.['timeline'], limit: 100 } },
  },
});

/** How old events are changes from one answer to the next. */
const withoutAges = (answer: SyncJson): unknown =>
  JSON.parse(JSON.stringify(answer, (key, value) => (key === 'age' ? undefined : value)));

/** Of those who were ignored for a while it depends on when one asks what one is told. */
function agree(
  { told, manner }: Follower,
  late: ReceivedRooms,
  roomId: string,
  everIgnored: ReadonlySet<string>,
): void {
  const [close, back] = [told.in(roomId), late.in(roomId)];
  const how = JSON.stringify(manner);
  if (!changesItsMind(manner)) {
    agreeOnEvents(close, back, how, everIgnored);
    assert.deepEqual(close.unread, back.unread, how);
    assert.deepEqual(close.unreadThreads, back.unreadThreads, how);
  }
  const lasting = ({ receipts }: ReceivedRoom) =>
    [...receipts].filter(([key]) => !everIgnored.has(JSON.parse(key)[0])).sort();
  assert.deepEqual(lasting(close), lasting(back), how);
  const typing = ({ typists }: ReceivedRoom) => typists.filter((userId) => !everIgnored.has(userId));
  assert.deepEqual(typing(close), typing(back), how);
}

function agreeOnEvents(
  close: ReceivedRoom,
  back: ReceivedRoom,
  how: string,
  everIgnored: ReadonlySet<string>,
): void {
  const lasting = ({ events }: ReceivedRoom) => events.filter(({ sender }) => !everIgnored.has(sender));
  const [seen, found] = [lasting(close), lasting(back)];
  const length = Math.min(seen.length, found.length);
  if (!close.isLimited && !back.isLimited) assert.equal(seen.length, found.length, how);
  assert.ok(length > 0);
  for (let index = 1; index <= length; index++) {
    const [one, other] = [seen.at(-index)!, found.at(-index)!];
    assert.deepEqual([one.event_id, one.type, one.sender], [other.event_id, other.type, other.sender], how);
    if (!other.unsigned?.['redacted_because']) assert.deepEqual(one.content, other.content, how);
  }
}
