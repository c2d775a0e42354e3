import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { assertAgreement } from './agreement.ts';
import { Network } from './network.ts';
import { enc, type Json, type Someone, type Sync } from './someone.ts';

/** The ephemeral event of a type that a sync has for a room. */
const ephemeral = ({ rooms }: Sync, room: string, type: string) =>
  rooms?.['join']?.[room]?.ephemeral?.events.find((event) => event['type'] === type)?.['content'] as
    | Json
    | undefined;

describe('with the reference server', () => {
  let network: Network;
  let here: Someone;
  let there: Someone;
  before(async () => {
    network = await Network.start();
    ({ here, there } = await network.two('anna'));
  });
  after(() => network?.stop());

  const bothWays = (title: string, run: (host: Someone, guest: Someone) => Promise<void>) => {
    it(`${title}, in a room of Hearth's`, () => run(here, there));
    it(`${title}, in a room of the other's`, () => run(there, here));
  };

  async function shared(host: Someone, guest: Someone, more: Json = {}): Promise<string> {
    const room = await host.room(more);
    await guest.join(room, host.server);
    return room;
  }

  bothWays('messages keep their order, however many at once', async (host, guest) => {
    const room = await shared(host, guest);
    const said: string[] = [];
    for (let i = 0; i < 60; i++) said.push(await host.say(room, `${i}`));
    await guest.sees(room, said.at(-1)!);
    const seen = (await guest.messages(room))
      .map((event) => event['event_id'])
      .filter((id) => said.includes(id as string));
    assert.deepEqual(seen.reverse(), said);
  });

  bothWays('both talk at the same time, and end with the same state', async (host, guest) => {
    const room = await shared(host, guest);
    await host.set(room, 'm.room.power_levels', {
      ...((await host.state(room)).get('m.room.power_levels|')?.['content'] as Json),
      users: { [host.id]: 100, [guest.id]: 50 },
    });
    await assertAgreement(room, host, guest);
    const talk = async (person: Someone) => {
      const said: string[] = [];
      for (let i = 0; i < 15; i++) {
        said.push(await person.say(room, `${person.id} ${i}`));
        said.push(await person.set(room, 'm.room.topic', { topic: `${person.id} ${i}` }));
      }
      return said;
    };
    const said = (await Promise.all([talk(host), talk(guest)])).flat();
    for (const person of [host, guest]) for (const id of said) await person.sees(room, id);
    const last = await host.say(room, 'after all that');
    await guest.sees(room, last);
    await assertAgreement(room, host, guest);
  });

  bothWays('power levels change, and what they forbid is refused', async (host, guest) => {
    const room = await shared(host, guest);
    const levels = (await host.state(room)).get('m.room.power_levels|')?.['content'] as Json;
    assert.equal(
      (await guest.call('PUT', `/rooms/${enc(room)}/state/m.room.name`, { name: 'mine' })).status,
      403,
    );
    await host.set(room, 'm.room.power_levels', { ...levels, users: { [host.id]: 100, [guest.id]: 100 } });
    await assertAgreement(room, host, guest);
    await guest.set(room, 'm.room.name', { name: 'mine' });
    await assertAgreement(room, host, guest);
  });

  bothWays('messages are redacted', async (host, guest) => {
    const room = await shared(host, guest);
    const own = await guest.say(room, 'a mistake');
    await host.sees(room, own);
    await guest.do('PUT', `/rooms/${enc(room)}/redact/${enc(own)}/r1`, { reason: 'sorry' });
    const others = await guest.say(room, 'an insult');
    await host.sees(room, others);
    await host.do('PUT', `/rooms/${enc(room)}/redact/${enc(others)}/r2`, {});
    for (const person of [host, guest]) {
      for (const id of [own, others]) {
        await eventually(`${id} to be empty for ${person.id}`, async () => {
          const { content } = await person.do('GET', `/rooms/${enc(room)}/event/${enc(id)}`);
          return Object.keys(content as Json).length === 0;
        });
      }
    }
  });

  bothWays('reactions, edits and threads arrive as what they are', async (host, guest) => {
    const room = await shared(host, guest);
    const root = await host.say(room, 'root');
    await guest.sees(room, root);
    const relate = (rel_type: string, more: Json = {}) => ({
      'm.relates_to': { rel_type, event_id: root, ...more },
    });
    await guest.send(room, 'm.reaction', relate('m.annotation', { key: '👍' }));
    await guest.send(room, 'm.room.message', { msgtype: 'm.text', body: 'reply', ...relate('m.thread') });
    await eventually('the thread to be there', async () => {
      const { unsigned } = await host.do('GET', `/rooms/${enc(room)}/event/${enc(root)}`);
      const relations = (unsigned as Json | undefined)?.['m.relations'] as Json | undefined;
      return (relations?.['m.thread'] as Json | undefined)?.['count'] === 1;
    });
    const reactions = `/_matrix/client/v1/rooms/${enc(room)}/relations/${enc(root)}/m.annotation`;
    const { chunk } = (await host.do('GET', reactions)) as { chunk: Json[] };
    assert.deepEqual(
      chunk.map(({ sender }) => sender),
      [guest.id],
    );
  });

  bothWays('rooms are upgraded, and people follow', async (host, guest) => {
    const room = await shared(host, guest, { room_version: '10' });
    const { replacement_room: next } = await host.do('POST', `/rooms/${enc(room)}/upgrade`, {
      new_version: '12',
    });
    await eventually('the tombstone', async () => (await guest.state(room)).has('m.room.tombstone|'));
    await guest.join(next as string, host.server);
    const created = (await guest.state(next as string)).get('m.room.create|')!;
    assert.equal(((created['content'] as Json)['predecessor'] as Json)['room_id'], room);
    await assertAgreement(next as string, host, guest);
  });

  bothWays('receipts arrive', async (host, guest) => {
    const room = await shared(host, guest);
    const said = await host.say(room, 'read this');
    await guest.sees(room, said);
    await guest.do('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(said)}`, {});
    await host.synced('the receipt', (sync) => {
      const receipts = ephemeral(sync, room, 'm.receipt')?.[said] as Record<string, Json> | undefined;
      return receipts?.['m.read']?.[guest.id] as Json | undefined;
    });
  });

  bothWays('typing is seen, and its end', async (host, guest) => {
    const room = await shared(host, guest);
    const path = `/rooms/${enc(room)}/typing/${enc(guest.id)}`;
    const typing = (sync: Sync) => ephemeral(sync, room, 'm.typing')?.['user_ids'] as string[] | undefined;
    await guest.do('PUT', path, { typing: true, timeout: 30_000 });
    await host.synced('typing', (sync) => typing(sync)?.includes(guest.id));
    await guest.do('PUT', path, { typing: false });
    await host.synced('no typing', (sync) => typing(sync)?.length === 0);
  });

  bothWays('presence is told to those who share a room', async (host, guest) => {
    await shared(host, guest);
    await guest.do('PUT', `/presence/${enc(guest.id)}/status`, {
      presence: 'online',
      status_msg: `at ${guest.id}`,
    });
    await eventually('the presence', async () => {
      const { status, body } = await host.call('GET', `/presence/${enc(guest.id)}/status`);
      return status === 200 && body['status_msg'] === `at ${guest.id}`;
    });
  });

  bothWays('profiles are looked up, and new ones reach rooms', async (host, guest) => {
    const room = await shared(host, guest);
    await guest.do('PUT', `/profile/${enc(guest.id)}/displayname`, { displayname: `New ${room}` });
    await eventually('the new name in the room', async () => {
      return (await host.member(room, guest.id))['displayname'] === `New ${room}`;
    });
    await eventually(
      'the new name in the profile',
      async () => (await host.do('GET', `/profile/${enc(guest.id)}`))['displayname'] === `New ${room}`,
    );
  });

  bothWays('a long history is read back to the beginning', async (host, guest) => {
    const room = await host.room();
    const said: string[] = [];
    for (let i = 0; i < 250; i++) said.push(await host.say(room, `${i}`));
    await guest.join(room, host.server);
    let seen: Json[] = [];
    let readings = 0;
    // The reference server looks for older events while it answers already, with gaps.
    await eventually(
      'the whole history',
      async () => {
        readings++;
        seen = await wholeHistory(guest, room);
        const isThere = new Set(seen.map((event) => event['event_id']));
        return seen.at(-1)?.['type'] === 'm.room.create' && said.every((id) => isThere.has(id));
      },
      60_000,
    );
    if (guest === here) assert.equal(readings, 1, 'Hearth has it the first time');
    const ids = seen.map((event) => event['event_id'] as string);
    const numbers = ids.map((id) => said.indexOf(id)).filter((index) => index >= 0);
    assert.equal(numbers.reverse().join(' '), said.map((_, index) => index).join(' '));
    assert.equal(new Set(ids).size, ids.length, 'nothing comes twice');
  });

  bothWays('public rooms are listed for the other server', async (host, guest) => {
    const name = `Listed ${host.id}`;
    await host.room({ visibility: 'public', name });
    const { chunk } = (await guest.do('GET', `/publicRooms?server=${enc(host.server.name)}`)) as {
      chunk: Json[];
    };
    assert.ok(chunk.some((room) => room['name'] === name));
  });

  bothWays('spaces are walked across servers', async (host, guest) => {
    const space = await host.room({ creation_content: { type: 'm.space' }, name: 'space' });
    const child = await host.room({ name: 'child' });
    await host.set(space, 'm.space.child', { via: [host.server.name] }, child);
    await guest.join(space, host.server);
    const { rooms } = (await guest.do('GET', `/_matrix/client/v1/rooms/${enc(space)}/hierarchy`)) as {
      rooms: Json[];
    };
    assert.deepEqual(
      rooms.map(({ name }) => name),
      ['space', 'child'],
    );
  });

  bothWays('events are found by their time', async (host, guest) => {
    const room = await shared(host, guest);
    const said = await host.say(room, 'at this time');
    const { origin_server_ts: ts } = await guest.sees(room, said);
    const path = `/_matrix/client/v1/rooms/${enc(room)}/timestamp_to_event?ts=${ts}&dir=f`;
    assert.equal((await guest.do('GET', path))['event_id'], said);
  });
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
