import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, InteropUser, type Json } from './interop-user.ts';

const adminPath = '/_synapse/admin/v1';

InteropSuite.onSharedServers('history', (suite) => {
  suite.bothWays('returns a long history back to the create event', async ({ host, guest }) => {
    const room = await host.createRoom();
    const eventIds: string[] = [];
    for (let i = 0; i < 120; i++) eventIds.push(await host.say(room, `${i}`));
    await guest.join(room, host.server);
    let received: Json[] = [];
    let attempts = 0;
    // The reference server answers before its backfill is complete, with gaps.
    await eventually('the complete history', async () => {
      attempts++;
      received = await completeHistory(guest, room);
      const receivedIds = new Set(received.map((event) => event['event_id']));
      return received.at(-1)?.['type'] === 'm.room.create' && eventIds.every((id) => receivedIds.has(id));
    });
    if (guest === suite.onHearth.first)
      assert.equal(attempts, 1, 'Hearth answers completely at the first request');
    const ids = received.map((event) => event['event_id'] as string);
    const numbers = ids.map((id) => eventIds.indexOf(id)).filter((index) => index >= 0);
    assert.equal(numbers.reverse().join(' '), eventIds.map((_, index) => index).join(' '));
    assert.equal(new Set(ids).size, ids.length, 'no event is returned twice');
  });

  suite.bothWays(
    'finds events by timestamp, also in a history that only the other server has',
    async ({ host, guest }) => {
      const room = await host.createRoom();
      const messageBeforeJoin = await host.say(room, 'before the join');
      const { origin_server_ts: then } = await host.waitForEvent(room, messageBeforeJoin);
      for (let i = 0; i < 20; i++) await host.say(room, `${i}`);
      await guest.join(room, host.server);
      const eventId = await host.say(room, 'after the join');
      const { origin_server_ts: now } = await guest.waitForEvent(room, eventId);
      const path = `/_matrix/client/v1/rooms/${enc(room)}/timestamp_to_event`;
      assert.equal((await guest.do('GET', `${path}?ts=${now}&dir=f`))['event_id'], eventId);
      const nearestEvent = await guest.do('GET', `${path}?ts=${then}&dir=f`);
      assert.equal(nearestEvent['origin_server_ts'], then);
    },
  );

  suite.scenario(
    'users of the reference server join rooms on Hearth after a purge of history, and Hearth backfills the deleted messages from the reference server',
    async () => {
      const { first: host } = suite.onHearth;
      const { first: guest } = suite.onReference;
      const [shared, unshared] = [await host.createRoomWith([guest]), await host.createRoom()];
      for (const room of [shared, unshared]) {
        for (let i = 0; i < 5; i++) await host.say(room, `${i}`);
        await host.say(room, 'last');
      }
      await eventually('the messages', async () => (await bodiesIn(guest, shared)).at(-1) === 'last');
      const admin = await InteropUser.registerAdmin(host.server, 'history-admin');
      for (const room of [shared, unshared]) {
        const purgeOptions = { purge_up_to_ts: Date.now(), delete_local_events: true };
        const { purge_id } = await admin.do('POST', `${adminPath}/purge_history/${enc(room)}`, purgeOptions);
        await eventually('the end of the purge', async () => {
          const { status } = await admin.do('GET', `${adminPath}/purge_history_status/${String(purge_id)}`);
          return status === 'complete';
        });
        await host.say(room, 'after the purge');
      }
      assert.deepEqual(await bodiesIn(host, unshared), ['last', 'after the purge']);
      await guest.join(unshared, host.server);
      await host.waitForEvent(unshared, await guest.say(unshared, 'hello'));
      await guest.waitForEvent(unshared, await host.say(unshared, 'welcome'));
      // The reference server never accepts the first remaining event, because it follows an event that no server has.
      const remaining = 'after the purge,hello,welcome';
      await eventually(
        'the remaining messages',
        async () => (await bodiesIn(guest, unshared)).join() === remaining,
      );
      const allTexts = [...Array.from({ length: 5 }, (_, index) => `${index}`), 'last', 'after the purge'];
      await eventually('the history', async () => (await bodiesIn(host, shared)).join() === allTexts.join());
    },
  );

  for (const [history_visibility, received] of [
    ['joined', ['after']],
    ['invited', ['between', 'after']],
    ['shared', ['before', 'between', 'after']],
  ] as const) {
    suite.bothWays(
      `returns as much history as the visibility '${history_visibility}' allows`,
      async ({ host, guest }) => {
        const content = { history_visibility };
        const visibility = { type: 'm.room.history_visibility', state_key: '', content };
        const room = await host.createRoom({ preset: 'private_chat', initial_state: [visibility] });
        await host.say(room, 'before');
        await host.invite(guest, room);
        await guest.waitForRoom(room, 'invite');
        await host.say(room, 'between');
        await guest.do('POST', `/join/${enc(room)}`);
        await guest.waitForEvent(room, await host.say(room, 'after'));
        await eventually('the history', async () => {
          const bodies = (await guest.messages(room)).map(({ content }) => (content as Json)['body']);
          const texts = bodies.filter((body) => body !== undefined).reverse();
          return texts.join() === received.join();
        });
      },
    );
  }
});

/** Returns the texts of a room's messages, oldest first. */
async function bodiesIn(reader: InteropUser, room: string): Promise<unknown[]> {
  const events = (await completeHistory(reader, room)).toReversed();
  return events.map(({ content }) => (content as Json)['body']).filter((body) => body !== undefined);
}

/** Reads a room's history, page by page, from the newest event back to the oldest. */
async function completeHistory(reader: InteropUser, room: string): Promise<Json[]> {
  const received: Json[] = [];
  let from = '';
  for (;;) {
    const page = await reader.do('GET', `/rooms/${enc(room)}/messages?dir=b&limit=50${from}`);
    received.push(...(page['chunk'] as Json[]));
    if (typeof page['end'] !== 'string') return received;
    from = `&from=${enc(page['end'])}`;
  }
}
