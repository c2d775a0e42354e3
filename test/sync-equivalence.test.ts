/**
 * Whatever several people do in several rooms: what a client has put together from one incremental sync after the
 * other is what a client learns that begins anew, for every way of syncing.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { serverDatabases } from './support/databases/databases.ts';
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

/** Ways of syncing; the timelines of the small ones are soon limited. */
const manners = [
  { filter: {} },
  { filter: { room: { timeline: { limit: 1 } } } },
  { filter: { room: { timeline: { limit: 2, types: ['m.room.message', 'm.room.topic'] } } } },
  { filter: { room: { timeline: { limit: 0 } } } },
  { filter: { room: { timeline: { limit: 3 } } }, use_state_after: true },
] as const;

const steps = randomSteps(userNames.length * manners.length);

for (const database of serverDatabases(import.meta.url)) {
  describe(`one sync after the other, on ${database}`, () => {
    let server: TestServer;
    let people: TestClient[];
    before(async () => {
      server = await startTestServer({ database });
      people = await Promise.all(userNames.map((name) => TestClient.register(server, name)));
    });
    after(() => server.stop());

    it('tells what a first sync tells', { timeout: 900_000 }, async () => {
      const numRuns = database === 'sqlite' ? (isThorough ? 40 : 12) : isThorough ? 6 : 3;
      await fc.assert(
        fc.asyncProperty(steps, (list) => play(people, list)),
        { numRuns, endOnFailure: true },
      );
    });
  });
}

async function play(people: TestClient[], list: readonly Step[]): Promise<void> {
  const [anna] = people;
  const rooms = await createRooms(anna!);
  const clients = people.flatMap((person) =>
    manners.map((manner) => ({ person, manner, view: new ClientView() })),
  );
  for (const { person, manner, view } of clients) view.apply(await person.sync(undefined, manner));
  const said: string[] = [];
  for (const step of list) {
    await runStep(people, rooms, said, step);
    for (const [index, { person, manner, view }] of clients.entries()) {
      if (step.watchers & (1 << index)) view.apply(await person.sync(view.since, manner));
    }
  }
  for (const { person, manner, view } of clients) {
    view.apply(await person.sync(view.since, manner));
    const fresh = new ClientView();
    const filter = {
      room: { ...('room' in manner.filter ? manner.filter.room : undefined), include_leave: true },
    };
    fresh.apply(await person.sync(undefined, { ...manner, filter }));
    for (const roomId of rooms) agree(view, fresh, roomId, `${person.id} ${JSON.stringify(manner)}`);
  }
  await leaveRooms(people, rooms);
}

function agree(view: ClientView, fresh: ClientView, roomId: string, who: string): void {
  const [grown, whole] = [view.rooms.get(roomId), fresh.rooms.get(roomId)];
  // A room that was left before its client first heard of it, or that was forgotten, is in one of them only.
  if (!grown || !whole) {
    assert.ok(
      (grown ?? whole)?.section !== 'join' && (grown ?? whole)?.section !== 'invite',
      `${who}: ${roomId}`,
    );
    return;
  }
  assert.equal(grown.section, whole.section, who);
  if (whole.section !== 'join') return;
  const sorted = (state: ReadonlyMap<string, string>) => Object.fromEntries([...state].sort());
  assert.deepEqual(sorted(grown.state), sorted(whole.state), who);
  const length = Math.min(grown.timeline.length, whole.timeline.length);
  assert.deepEqual(lastOf(grown.timeline, length), lastOf(whole.timeline, length), who);
  // Heroes that are not needed any more stay with a client that knew them.
  for (const [key, value] of Object.entries(whole.summary)) assert.deepEqual(grown.summary[key], value, who);
}

const lastOf = (list: readonly string[], length: number) => list.slice(list.length - length);
