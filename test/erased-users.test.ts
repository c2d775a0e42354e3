import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { SlidingClient } from './support/users/sliding-client.ts';
import { enc, TestClient } from './support/users/test-client.ts';

const editedText = 'the second secret';

let connections = 0;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('events of a user who was deactivated with erase: true', () => {
    let server: TestServer;
    let owner: TestClient;
    let erasedUser: TestClient;
    /** Is in the room when the events are sent. */
    let witness: TestClient;
    /** Joins after the events were sent and before the erasure. */
    let reader: TestClient;
    /** Is in the room before the events are sent, and again after the erasure. */
    let returned: TestClient;
    /** Joins after the erasure. */
    let late: TestClient;
    let room: string;
    let messageId: string;
    let editId: string;
    let otherMessageId: string;
    let topicId: string;
    before(async () => {
      server = await startTestServer({ database: kind });
      const names = ['owner', 'gone', 'witness', 'reader', 'returned', 'late'];
      const clients: TestClient[] = [];
      for (const name of names) clients.push(await TestClient.register(server, name));
      [owner, erasedUser, witness, reader, returned, late] = clients as [
        TestClient,
        TestClient,
        TestClient,
        TestClient,
        TestClient,
        TestClient,
      ];
      room = await owner.createRoom({ preset: 'public_chat', name: 'Kept' });
      for (const user of [erasedUser, witness, returned]) await user.join(room);
      await owner.setState(room, 'm.room.power_levels', { users: { [owner.id]: 100, [erasedUser.id]: 50 } });
      await returned.leave(room);
      await erasedUser.do('PUT', `/profile/${enc(erasedUser.id)}/displayname`, { displayname: 'Somebody' });
      messageId = await erasedUser.say(room, 'the first secret');
      editId = await erasedUser.send(room, 'm.room.message', {
        msgtype: 'm.text',
        body: `* ${editedText}`,
        'm.new_content': { msgtype: 'm.text', body: editedText },
        'm.relates_to': { rel_type: 'm.replace', event_id: messageId },
      });
      topicId = await erasedUser.setState(room, 'm.room.topic', { topic: 'set by a user who left' });
      otherMessageId = await owner.say(room, 'nothing secret');
      await reader.join(room);
      const auth = { type: 'm.login.password', user: erasedUser.id, password: 'correct horse' };
      await erasedUser.do('POST', '/account/deactivate', { erase: true, auth });
      for (const user of [late, returned]) await user.join(room);
    });
    after(() => server.stop());

    const path = (rest: string) => `/rooms/${enc(room)}${rest}`;

    /** Returns the responses of all endpoints that return the message or its edit. */
    async function readEverywhere(client: TestClient): Promise<Record<string, string>> {
      const id = enc(messageId);
      const sliding = new SlidingClient(client, `connection ${connections++}`);
      const list = { ranges: [[0, 9]], timeline_limit: 50, required_state: [] };
      const slidingResponse = await sliding.request({ lists: { all: list } });
      return {
        event: (await client.call('GET', path(`/event/${id}`))).raw,
        eventOfEdit: (await client.call('GET', path(`/event/${enc(editId)}`))).raw,
        context: (await client.call('GET', path(`/context/${enc(otherMessageId)}`))).raw,
        messages: (await client.call('GET', path('/messages'), undefined, { dir: 'b', limit: 100 })).raw,
        sync: JSON.stringify(await client.sync(undefined, { filter: { room: { timeline: { limit: 50 } } } })),
        sliding: slidingResponse.raw,
        initialSync: (await client.call('GET', path('/initialSync'), undefined, { limit: 50 })).raw,
      };
    }

    const checkReaders = async () => {
      for (const client of [witness, reader]) {
        for (const [endpoint, raw] of Object.entries(await readEverywhere(client))) {
          assert.match(raw, /the (first|second) secret/, `${client.id}: ${endpoint}`);
        }
      }
      for (const client of [late, returned]) {
        for (const [endpoint, raw] of Object.entries(await readEverywhere(client))) {
          assert.doesNotMatch(raw, /the (first|second) secret|Somebody/, `${client.id}: ${endpoint}`);
          assert.match(
            raw,
            new RegExp(`"event_id":"\\${messageId}"|"event_id":"\\${editId}"`),
            `${client.id}: ${endpoint}`,
          );
        }
      }
    };

    it(
      'shows the events of an erased user to members from before the erasure, and redacts them for users who join after it',
      checkReaders,
    );

    it('shows or redacts the events of an erased user in the same way after a restart', async () => {
      await server.restart();
      await checkReaders();
    });

    it('POST /search finds the events of an erased user only for members from before the erasure', async () => {
      const idsFoundBy = async (client: TestClient) => {
        const body = { search_categories: { room_events: { search_term: 'secret' } } };
        const { search_categories: categories } = await client.do('POST', '/search', body);
        const { results } = (categories as { room_events: { results: { result: { event_id: string } }[] } })
          .room_events;
        return results.map(({ result }) => result.event_id);
      };
      const nearbyEvents = { search_term: 'nothing', event_context: { include_profile: true } };
      const context = await late.call('POST', '/search', {
        search_categories: { room_events: nearbyEvents },
      });
      assert.match(context.raw, new RegExp(`"event_id":"\\${messageId}"`));
      assert.doesNotMatch(context.raw, /the (first|second) secret|Somebody/);
      assert.ok((await idsFoundBy(witness)).includes(messageId));
      assert.deepEqual(await idsFoundBy(late), [otherMessageId]);
    });

    it('shows the state events of an erased user unredacted', async () => {
      assert.deepEqual(await late.do('GET', path('/state/m.room.topic')), {
        topic: 'set by a user who left',
      });
      const { content } = await late.do('GET', path(`/event/${enc(topicId)}`));
      assert.deepEqual(content, { topic: 'set by a user who left' });
    });

    it('sends no redaction of the events of an erased user: unsigned.redacted_because is absent', async () => {
      const { unsigned } = await witness.do('GET', path(`/event/${enc(messageId)}`));
      assert.equal((unsigned as Record<string, unknown>)['redacted_because'], undefined);
    });
  });
});
