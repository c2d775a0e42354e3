/**
 * Property test: after any actions of several users in several rooms, the rooms that a client has accumulated
 * from incremental syncs equal the rooms of an initial sync, for every set of sync options.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { selectedDatabases } from './support/databases/databases.ts';
import { isThorough } from './support/inputs/thoroughness.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { ClientView } from './support/users/client-view.ts';
import {
  createRooms,
  leaveRooms,
  randomSteps,
  runStep,
  type Step,
  userNames,
} from './support/users/random-actions.ts';
import { TestClient } from './support/users/test-client.ts';

/** Sets of sync options; small timeline limits make timelines limited soon. */
const syncOptions = [
  { filter: {} },
  { filter: { room: { timeline: { limit: 1 } } } },
  { filter: { room: { timeline: { limit: 2, types: ['m.room.message', 'm.room.topic'] } } } },
  { filter: { room: { timeline: { limit: 0 } } } },
  { filter: { room: { timeline: { limit: 3 } } }, use_state_after: true },
] as const;

const steps = randomSteps(userNames.length * syncOptions.length);

for (const database of selectedDatabases(import.meta.url)) {
  describe(`incremental sync, on ${database}`, () => {
    let server: TestServer;
    let users: TestClient[];
    before(async () => {
      server = await startTestServer({ database });
      users = await Promise.all(userNames.map((name) => TestClient.register(server, name)));
    });
    after(() => server.stop());

    it('incremental syncs result in the same rooms as an initial sync, after random actions of several users', {
      timeout: 900_000,
    }, async () => {
      const numRuns = database === 'sqlite' ? (isThorough ? 40 : 6) : isThorough ? 6 : 3;
      await fc.assert(
        fc.asyncProperty(steps, (played) => runSteps(users, played)),
        { numRuns, endOnFailure: true },
      );
    });
  });
}

async function runSteps(users: TestClient[], played: readonly Step[]): Promise<void> {
  const [anna] = users;
  const rooms = await createRooms(anna!);
  const watchers = users.flatMap((client) =>
    syncOptions.map((options) => ({ client, options, view: new ClientView() })),
  );
  for (const { client, options, view } of watchers) view.apply(await client.sync(undefined, options));
  const sentIds: string[] = [];
  for (const step of played) {
    await runStep(users, rooms, sentIds, step);
    for (const [index, { client, options, view }] of watchers.entries()) {
      if (step.syncMask & (1 << index)) view.apply(await client.sync(view.since, options));
    }
  }
  for (const { client, options, view } of watchers) {
    view.apply(await client.sync(view.since, options));
    const initial = new ClientView();
    const filter = {
      room: { ...('room' in options.filter ? options.filter.room : undefined), include_leave: true },
    };
    initial.apply(await client.sync(undefined, { ...options, filter }));
    for (const roomId of rooms)
      assertSameRoom(view, initial, roomId, `${client.id} ${JSON.stringify(options)}`);
  }
  await leaveRooms(users, rooms);
}

function assertSameRoom(view: ClientView, initial: ClientView, roomId: string, context: string): void {
  const [room, expected] = [view.rooms.get(roomId), initial.rooms.get(roomId)];
  // Only one of the views has a room that was left before the client first received it, or that was
  // forgotten.
  if (!room || !expected) {
    assert.ok(
      (room ?? expected)?.section !== 'join' && (room ?? expected)?.section !== 'invite',
      `${context}: ${roomId}`,
    );
    return;
  }
  assert.equal(room.section, expected.section, context);
  if (expected.section !== 'join') return;
  const sorted = (state: ReadonlyMap<string, string>) => Object.fromEntries([...state].sort());
  assert.deepEqual(sorted(room.state), sorted(expected.state), context);
  const length = Math.min(room.timeline.length, expected.timeline.length);
  assert.deepEqual(lastOf(room.timeline, length), lastOf(expected.timeline, length), context);
  // A client keeps heroes that later summaries omit.
  for (const [key, value] of Object.entries(expected.summary))
    assert.deepEqual(room.summary[key], value, context);
}

const lastOf = (list: readonly string[], length: number) => list.slice(list.length - length);
