import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';

const clientApi = '/_matrix/client/v3';
const example = (name: string) => join(import.meta.dirname, '..', '..', 'contrib', 'modules', name);

for (const database of selectedDatabases(import.meta.url)) {
  describe(`the example modules on ${database}`, () => {
    let server: TestServer;
    let alice: TestUser;
    let admin: TestUser;

    before(async () => {
      server = await startTestServer({
        database,
        config: {
          modules: {
            modules: [
              {
                module: example('spam-checker.ts'),
                config: { patterns: ['buy .* coins'], max_messages: 3, per_seconds: 3600 },
              },
              { module: example('invite-policy.ts'), config: { servers: ['test'] } },
            ],
          },
        },
      });
      [admin, alice] = [await server.register('admin'), await server.register('alice')];
      await server.register('bob');
    });
    after(() => server.stop());

    const call = (user: TestUser, method: string, path: string, body: object) =>
      server.api(method, `${clientApi}${path}`, { token: user.token, body });
    const createRoom = async (user: TestUser) =>
      String((await call(user, 'POST', '/createRoom', {})).body['room_id']);
    let transactions = 0;
    const say = (user: TestUser, roomId: string, body: string) =>
      call(user, 'PUT', `/rooms/${roomId}/send/m.room.message/${transactions++}`, {
        msgtype: 'm.text',
        body,
      });

    it('the example spam checker rejects messages, edits and topics that match a forbidden pattern, and messages above the rate limit', async () => {
      const roomId = await createRoom(alice);
      const spam = await say(alice, roomId, 'Buy my COINS');
      assert.deepEqual([spam.status, spam.body['errcode']], [403, 'M_FORBIDDEN']);
      const topic = await call(alice, 'PUT', `/rooms/${roomId}/state/m.room.topic`, {
        topic: 'buy new coins',
      });
      assert.equal(topic.status, 403);
      const edit = {
        msgtype: 'm.text',
        body: '* x',
        'm.new_content': { msgtype: 'm.text', body: 'buy my coins' },
      };
      const edited = await call(alice, 'PUT', `/rooms/${roomId}/send/m.room.message/edit`, edit);
      assert.equal(edited.status, 403);
      for (let count = 0; count < 3; count++) assert.equal((await say(alice, roomId, 'hello')).status, 200);
      const fourth = await say(alice, roomId, 'hello');
      assert.deepEqual([fourth.status, fourth.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
      assert.equal((await say(admin, await createRoom(admin), 'hello')).status, 200);
    });

    it('the example policy for invites rejects invites of users whose server is not listed, and all invites to rooms whose state forbids invites', async () => {
      const roomId = await createRoom(alice);
      const invite = (user_id: string) => call(alice, 'POST', `/rooms/${roomId}/invite`, { user_id });
      const stranger = await invite('@eve:elsewhere.example');
      assert.deepEqual([stranger.status, stranger.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.match(String(stranger.body['error']), /Users of elsewhere\.example cannot be invited/);
      assert.equal((await invite('@bob:test')).status, 200);
      await call(alice, 'PUT', `/rooms/${roomId}/state/org.example.invites`, { allowed: false });
      const closed = await invite('@admin:test');
      assert.deepEqual([closed.status, closed.body['error']], [403, 'Invites to this room are closed']);
    });
  });
}
