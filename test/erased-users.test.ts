import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forServerDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { SlidingClient } from './support/users/sliding-client.ts';
import { enc, TestClient } from './support/users/test-client.ts';

const edit = 'the second secret';

let connections = 0;

forServerDatabases(import.meta.url, (open) => {
  describe('what a user sent who has asked for erasure', () => {
    let server: TestServer;
    let owner: TestClient;
    let gone: TestClient;
    /** Was there when it was said. */
    let witness: TestClient;
    /** Came after it was said, and before the erasure. */
    let reader: TestClient;
    /** Was there before it was said, and comes back after the erasure. */
    let returned: TestClient;
    /** Comes after the erasure. */
    let late: TestClient;
    let room: string;
    let [said, edited, spoken, topic]: string[] = [];
    before(async () => {
      server = await startTestServer({ database: open.kind });
      const names = ['owner', 'gone', 'witness', 'reader', 'returned', 'late'];
      const people: TestClient[] = [];
      for (const name of names) people.push(await TestClient.register(server, name));
      [owner, gone, witness, reader, returned, late] = people as [
        TestClient,
        TestClient,
        TestClient,
        TestClient,
        TestClient,
        TestClient,
      ];
      room = await owner.createRoom({ preset: 'public_chat', name: 'Kept' });
      for (const one of [gone, witness, returned]) await one.join(room);
      await owner.setState(room, 'm.room.power_levels', { users: { [owner.id]: 100, [gone.id]: 50 } });
      await returned.leave(room);
      await gone.do('PUT', `/profile/${enc(gone.id)}/displayname`, { displayname: 'Somebody' });
      said = await gone.say(room, 'the first secret');
      edited = await gone.send(room, 'm.room.message', {
        msgtype: 'm.text',
        body: `* ${edit}`,
        'm.new_content': { msgtype: 'm.text', body: edit },
        'm.relates_to': { rel_type: 'm.replace', event_id: said },
      });
      topic = await gone.setState(room, 'm.room.topic', { topic: 'set by one who left' });
      spoken = await owner.say(room, 'nothing secret');
      await reader.join(room);
      const auth = { type: 'm.login.password', user: gone.id, password: 'correct horse' };
      await gone.do('POST', '/account/deactivate', { erase: true, auth });
      for (const one of [late, returned]) await one.join(room);
    });
    after(() => server.stop());

    const path = (rest: string) => `/rooms/${enc(room)}${rest}`;

    /** All the ways to read it. */
    async function readings(person: TestClient): Promise<Record<string, string>> {
      const id = enc(said!);
      const sliding = new SlidingClient(person, `connection ${connections++}`);
      const list = { ranges: [[0, 9]], timeline_limit: 50, required_state: [] };
      const slid = await sliding.ask({ lists: { all: list } });
      return {
        event: (await person.call('GET', path(`/event/${id}`))).raw,
        editing: (await person.call('GET', path(`/event/${enc(edited!)}`))).raw,
        context: (await person.call('GET', path(`/context/${enc(spoken!)}`))).raw,
        messages: (await person.call('GET', path('/messages'), undefined, { dir: 'b', limit: 100 })).raw,
        sync: JSON.stringify(await person.sync(undefined, { filter: { room: { timeline: { limit: 50 } } } })),
        sliding: slid.raw,
        initialSync: (await person.call('GET', path('/initialSync'), undefined, { limit: 50 })).raw,
      };
    }

    const check = async () => {
      for (const person of [witness, reader]) {
        for (const [way, raw] of Object.entries(await readings(person))) {
          assert.match(raw, /secret/, `${person.id}: ${way}`);
          if (way !== 'editing') assert.match(raw, /the (first|second) secret/, `${person.id}: ${way}`);
        }
      }
      for (const person of [late, returned]) {
        for (const [way, raw] of Object.entries(await readings(person))) {
          assert.doesNotMatch(raw, /the (first|second) secret|Somebody/, `${person.id}: ${way}`);
          assert.match(
            raw,
            new RegExp(`"event_id":"\\${said}"|"event_id":"\\${edited}"`),
            `${person.id}: ${way}`,
          );
        }
      }
    };

    it('is shown to those who could see it before, and redacted to those who come later', check);

    it('is the same after a restart', async () => {
      await server.restart();
      await check();
    });

    it('is not found by those who come later', async () => {
      const found = async (person: TestClient) => {
        const body = { search_categories: { room_events: { search_term: 'secret' } } };
        const { search_categories: categories } = await person.do('POST', '/search', body);
        const { results } = (categories as { room_events: { results: { result: { event_id: string } }[] } })
          .room_events;
        return results.map(({ result }) => result.event_id);
      };
      const around = { search_term: 'nothing', event_context: { include_profile: true } };
      const context = await late.call('POST', '/search', { search_categories: { room_events: around } });
      assert.match(context.raw, new RegExp(`"event_id":"\\${said}"`));
      assert.doesNotMatch(context.raw, /the (first|second) secret|Somebody/);
      assert.ok((await found(witness)).includes(said!));
      assert.deepEqual(await found(late), [spoken]);
    });

    it('stays part of the state of the room', async () => {
      assert.deepEqual(await late.do('GET', path('/state/m.room.topic')), { topic: 'set by one who left' });
      const { content } = await late.do('GET', path(`/event/${enc(topic!)}`));
      assert.deepEqual(content, { topic: 'set by one who left' });
    });

    it('is not taken from the room: nobody hears of a redaction', async () => {
      const { unsigned } = await witness.do('GET', path(`/event/${enc(said!)}`));
      assert.equal((unsigned as Record<string, unknown>)['redacted_because'], undefined);
    });
  });
});
