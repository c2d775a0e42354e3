/**
 * Whatever several people do in several rooms: what a client has put together from one incremental sync after the
 * other is what a client learns that begins anew, for every way of syncing.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { ClientView } from './support/client-view.ts';
import { enc, Person } from './support/person.ts';
import { startTestServer, type TestServer } from './support/server.ts';

const names = ['anna', 'ben', 'cleo'];

/** Ways of syncing; the timelines of the small ones are soon limited. */
const manners = [
  { filter: {} },
  { filter: { room: { timeline: { limit: 1 } } } },
  { filter: { room: { timeline: { limit: 2, types: ['m.room.message', 'm.room.topic'] } } } },
  { filter: { room: { timeline: { limit: 0 } } } },
  { filter: { room: { timeline: { limit: 3 } } }, use_state_after: true },
] as const;

/** Some who are able to do them and many who are not: what is refused changes nothing. */
const actions = [
  'say',
  'say',
  'say',
  'topic',
  'name',
  'nick',
  'join',
  'join',
  'leave',
  'invite',
  'kick',
  'ban',
  'unban',
  'knock',
  'redact',
  'forget',
  'visibility',
] as const;

interface Step {
  readonly actor: number;
  readonly target: number;
  readonly room: number;
  readonly action: (typeof actions)[number];
  readonly watchers: number;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    actor: fc.nat(names.length - 1),
    target: fc.nat(names.length - 1),
    room: fc.nat(1),
    action: fc.constantFrom(...actions),
    /** Bits: which clients sync after it. */
    watchers: fc.nat(2 ** (names.length * manners.length) - 1),
  }),
  { minLength: 5, maxLength: 25 },
);

for (const database of ['sqlite', 'postgres'] as const) {
  describe(`one sync after the other, on ${database}`, () => {
    let server: TestServer;
    let people: Person[];
    before(async () => {
      server = await startTestServer({ database });
      people = await Promise.all(names.map((name) => Person.register(server, name)));
    });
    after(() => server.stop());

    it('tells what a first sync tells', { timeout: 120_000 }, async () => {
      const numRuns = database === 'sqlite' ? 40 : 6;
      await fc.assert(
        fc.asyncProperty(steps, (list) => play(people, list)),
        { numRuns, endOnFailure: true },
      );
    });
  });
}

async function play(people: Person[], list: readonly Step[]): Promise<void> {
  const [anna] = people;
  const rooms = [
    await anna!.createRoom({
      preset: 'public_chat',
      power_level_content_override: { users_default: 40, state_default: 40, kick: 40, invite: 0 },
    }),
    await anna!.createRoom({
      preset: 'private_chat',
      initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
    }),
  ];
  const clients = people.flatMap((person) =>
    manners.map((manner) => ({ person, manner, view: new ClientView() })),
  );
  for (const { person, manner, view } of clients) view.apply(await person.sync(undefined, manner));
  const said: string[] = [];
  for (const step of list) {
    await act(people, rooms, said, step);
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
  await tidy(people, rooms);
}

/** The next round is not to hear of the rooms of this one. */
async function tidy(people: readonly Person[], rooms: readonly string[]): Promise<void> {
  for (const person of people) {
    for (const roomId of rooms) {
      await person.call('POST', `/rooms/${enc(roomId)}/leave`, {});
      await person.call('POST', `/rooms/${enc(roomId)}/forget`, {});
    }
  }
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

let transactions = 0;

async function act(people: Person[], rooms: string[], said: string[], step: Step): Promise<void> {
  const actor = people[step.actor]!;
  const target = people[step.target]!;
  const roomId = rooms[step.room]!;
  const path = `/rooms/${enc(roomId)}`;
  const word = `${step.action} ${said.length}`;
  const transaction = `transaction${transactions++}`;
  const put = (type: string, content: object, key = '') =>
    actor.call('PUT', `${path}/state/${type}/${enc(key)}`, content);
  switch (step.action) {
    case 'say': {
      const answer = await actor.call('PUT', `${path}/send/m.room.message/${transaction}`, {
        body: word,
        msgtype: 'm.text',
      });
      if (answer.status === 200) said.push(String(answer.body['event_id']));
      return;
    }
    case 'redact':
      await actor.call('PUT', `${path}/redact/${enc(said.at(-1) ?? '$none')}/${transaction}`, {});
      return;
    case 'topic':
    case 'name':
      await put(`m.room.${step.action}`, { [step.action]: word + transaction });
      return;
    case 'visibility':
      await put('m.room.history_visibility', {
        history_visibility: ['joined', 'shared', 'invited'][step.target],
      });
      return;
    case 'nick':
      await put('m.room.member', { membership: 'join', displayname: word + transaction }, actor.id);
      return;
    case 'knock':
      await actor.call('POST', `/knock/${enc(roomId)}`, {});
      return;
    case 'join':
    case 'leave':
    case 'forget':
      await actor.call('POST', `${path}/${step.action}`, {});
      return;
    default:
      await actor.call('POST', `${path}/${step.action}`, { user_id: target.id });
  }
}
