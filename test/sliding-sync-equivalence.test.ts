/**
 * Property test: after any actions of several users in several rooms, the rooms that a client has accumulated
 * from sliding sync responses equal the rooms of an initial classic sync, for every style of requests and with
 * repeated requests.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { selectedDatabases } from './support/databases/databases.ts';
import { isThorough } from './support/inputs/thoroughness.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import {
  createRooms,
  leaveRooms,
  randomSteps,
  runStep,
  type Step,
  userNames,
} from './support/users/random-actions.ts';
import { SlidingClient } from './support/users/sliding-client.ts';
import { TestClient } from './support/users/test-client.ts';

const allState = [['*', '*']];
const lazyMembers = [
  ['*', '*'],
  ['m.room.member', '$LAZY'],
];
const littleState = [
  ['m.room.name', ''],
  ['m.room.member', '$ME'],
];

const list = (last: number, timeline_limit: number, required_state: string[][]) => ({
  lists: { rooms: { ranges: [[0, last]], timeline_limit, required_state } },
});

/** Styles of requests: the body of the nth request and of the last one. */
const requestStyles: readonly { readonly nth: (count: number) => object; readonly last: object }[] = [
  { nth: () => list(9, 20, allState), last: list(9, 20, allState) },
  { nth: () => list(9, 1, allState), last: list(9, 1, allState) },
  { nth: () => list(9, 2, lazyMembers), last: list(9, 2, lazyMembers) },
  // The window of this style has one room, and grows in the last request.
  { nth: () => list(0, 3, allState), last: list(9, 3, allState) },
  // This style requests more or less each time.
  {
    nth: (count) => (count % 2 ? list(9, 1, littleState) : list(0, 4, lazyMembers)),
    last: list(9, 5, allState),
  },
];

const steps = randomSteps(userNames.length * requestStyles.length);

for (const database of selectedDatabases(import.meta.url)) {
  describe(`incremental sliding sync, on ${database}`, () => {
    let server: TestServer;
    let users: TestClient[];
    before(async () => {
      server = await startTestServer({ database });
      users = await Promise.all(userNames.map((name) => TestClient.register(server, name)));
    });
    after(() => server.stop());

    it('incremental sliding sync shows the rooms of an initial classic sync', {
      timeout: 900_000,
    }, async () => {
      const numRuns = database === 'sqlite' ? (isThorough ? 40 : 3) : isThorough ? 6 : 3;
      await fc.assert(
        fc.asyncProperty(steps, (played) => runSteps(server, users, played)),
        { numRuns, endOnFailure: true },
      );
    });
  });
}

/** A client with its style of requests. */
interface Watcher {
  readonly client: SlidingClient;
  readonly style: (typeof requestStyles)[number];
  /** Number of syncs so far. */
  count: number;
}

async function runSteps(
  server: TestServer,
  users: readonly TestClient[],
  played: readonly Step[],
): Promise<void> {
  const rooms = await createRooms(users[0]!);
  const watchers = users.flatMap((user) =>
    requestStyles.map(
      (style, index): Watcher => ({ client: new SlidingClient(user, `style ${index}`), style, count: 0 }),
    ),
  );
  const sentIds: string[] = [];
  for (const [index, step] of played.entries()) {
    await runStep(users, rooms, sentIds, step);
    for (const [bit, watcher] of watchers.entries()) if (step.syncMask & (1 << bit)) await syncOnce(watcher);
    if (index === 10) await server.restart();
  }
  for (const { client, style } of watchers) {
    await client.sync(style.last);
    for (const roomId of rooms) await assertMatchesClassicSync(client, roomId, style.last);
  }
  await leaveRooms(users, rooms);
}

/**
 * Sends a request and applies its response. Before every third one it discards the response of another
 * request with the same `pos`, as if it had been lost.
 */
async function syncOnce(watcher: Watcher): Promise<void> {
  const { client, style } = watcher;
  const body = style.nth(watcher.count++);
  if (watcher.count % 3 === 0) await client.request(style.nth(watcher.count));
  await client.sync(body);
}

async function assertMatchesClassicSync(
  client: SlidingClient,
  roomId: string,
  request: object,
): Promise<void> {
  const filter = { room: { timeline: { limit: 100 } } };
  const { rooms = {} } = await client.client.sync(undefined, { filter, use_state_after: true });
  const room = client.rooms.get(roomId);
  const context = `${client.client.id} ${roomId} ${JSON.stringify(request)}`;
  const expected = rooms.join?.[roomId];
  if (!expected) {
    const membership = rooms.invite?.[roomId] ? 'invite' : rooms.knock?.[roomId] ? 'knock' : undefined;
    if (membership) assert.equal(room?.membership, membership, context);
    else assert.ok(room?.membership !== 'join', context);
    return;
  }
  assert.equal(room?.membership, 'join', context);
  const expectedState = Object.fromEntries(
    (expected.state_after?.events ?? []).map((event) => [
      JSON.stringify([event.type, event.state_key]),
      event.event_id,
    ]),
  );
  const state = Object.fromEntries(room?.state ?? []);
  const isLazy = JSON.stringify(request).includes('$LAZY');
  if (!isLazy) assert.deepEqual(state, expectedState, context);
  for (const [key, eventId] of Object.entries(state)) {
    // With lazy loading, the membership of a user who sent nothing can be out of date after a gap.
    if (!isLazy || !key.includes('m.room.member'))
      assert.equal(eventId, expectedState[key], `${context} ${key}`);
  }
  const timeline = expected.timeline.events.map(({ event_id }) => event_id);
  const length = Math.min(timeline.length, room?.timeline.length ?? 0);
  assert.deepEqual(room?.timeline.slice(-length), timeline.slice(-length), context);
  assert.equal(room?.fields['joined_count'], expected.summary?.['m.joined_member_count'], context);
  const name = expected.state_after?.events.find(({ type }) => type === 'm.room.name')?.content['name'];
  assert.equal(room?.fields['name'] ?? undefined, name, context);
}
