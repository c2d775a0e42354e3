import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { Meeting } from './meeting.ts';
import { enc, type Json, type Someone } from './someone.ts';

Meeting.of('history', (meeting) => {
  meeting.bothWays('a long history is read back to the beginning', async ({ host, guest }) => {
    const room = await host.room();
    const said: string[] = [];
    for (let i = 0; i < 120; i++) said.push(await host.say(room, `${i}`));
    await guest.join(room, host.server);
    let seen: Json[] = [];
    let readings = 0;
    // The reference server looks for older events while it answers already, with gaps.
    await eventually('the whole history', async () => {
      readings++;
      seen = await wholeHistory(guest, room);
      const isThere = new Set(seen.map((event) => event['event_id']));
      return seen.at(-1)?.['type'] === 'm.room.create' && said.every((id) => isThere.has(id));
    });
    if (guest === meeting.here.one) assert.equal(readings, 1, 'Hearth has it the first time');
    const ids = seen.map((event) => event['event_id'] as string);
    const numbers = ids.map((id) => said.indexOf(id)).filter((index) => index >= 0);
    assert.equal(numbers.reverse().join(' '), said.map((_, index) => index).join(' '));
    assert.equal(new Set(ids).size, ids.length, 'nothing comes twice');
  });

  meeting.bothWays(
    'events are found by their time, also in a history that is elsewhere',
    async ({ host, guest }) => {
      const room = await host.room();
      const old = await host.say(room, 'long before the guest came');
      const { origin_server_ts: then } = await host.sees(room, old);
      for (let i = 0; i < 20; i++) await host.say(room, `${i}`);
      await guest.join(room, host.server);
      const said = await host.say(room, 'at this time');
      const { origin_server_ts: now } = await guest.sees(room, said);
      const path = `/_matrix/client/v1/rooms/${enc(room)}/timestamp_to_event`;
      assert.equal((await guest.do('GET', `${path}?ts=${now}&dir=f`))['event_id'], said);
      const found = await guest.do('GET', `${path}?ts=${then}&dir=f`);
      assert.equal(found['origin_server_ts'], then);
    },
  );

  for (const [history_visibility, seen] of [
    ['joined', ['after']],
    ['invited', ['between', 'after']],
    ['shared', ['before', 'between', 'after']],
  ] as const) {
    meeting.bothWays(`history that is for '${history_visibility}'`, async ({ host, guest }) => {
      const content = { history_visibility };
      const visibility = { type: 'm.room.history_visibility', state_key: '', content };
      const room = await host.room({ preset: 'private_chat', initial_state: [visibility] });
      await host.say(room, 'before');
      await host.invite(guest, room);
      await guest.listed(room, 'invite');
      await host.say(room, 'between');
      await guest.do('POST', `/join/${enc(room)}`);
      await guest.sees(room, await host.say(room, 'after'));
      await eventually('the history', async () => {
        const bodies = (await guest.messages(room)).map(({ content }) => (content as Json)['body']);
        const texts = bodies.filter((body) => body !== undefined).reverse();
        return texts.join() === seen.join();
      });
    });
  }
});

/** Reads a room's history backward, page by page, until there is no more. */
async function wholeHistory(reader: Someone, room: string): Promise<Json[]> {
  const seen: Json[] = [];
  let from = '';
  for (;;) {
    const page = await reader.do('GET', `/rooms/${enc(room)}/messages?dir=b&limit=50${from}`);
    seen.push(...(page['chunk'] as Json[]));
    if (typeof page['end'] !== 'string') return seen;
    from = `&from=${enc(page['end'])}`;
  }
}
