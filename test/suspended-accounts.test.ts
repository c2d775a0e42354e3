import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from './clients/eventually.ts';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { registerAdmin } from './support/users/register-admin.ts';
import { enc, TestClient } from './support/users/test-client.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('a suspended account', () => {
    let server: TestServer;
    let admin: TestClient;
    let anna: TestClient;
    let ben: TestClient;
    let room: string;
    let annasEventId: string;
    let bensEventId: string;
    before(async () => {
      server = await startTestServer({
        database: open.kind,
        config: { rooms: { max_event_delay_duration: 3_600_000 } },
      });
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
      admin = await registerAdmin(server);
      room = await anna.createRoom();
      await ben.join(room);
      [annasEventId, bensEventId] = [await anna.say(room, 'by Anna'), await ben.say(room, 'by Ben')];
    });
    after(() => server.stop());

    const path = () => `/_matrix/client/v1/admin/suspend/${enc(anna.id)}`;
    const suspend = async (suspended: boolean) => {
      const answer = await admin.request('PUT', path(), { suspended });
      assert.deepEqual([answer.status, answer.body], [200, { suspended }]);
    };
    const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
      status,
      body['errcode'],
    ];
    const pathInRoom = (rest: string) => `/rooms/${enc(room)}/${rest}`;

    it('lets only administrators suspend and unsuspend an account', async () => {
      assert.deepEqual((await admin.request('GET', path(), undefined)).body, { suspended: false });
      assert.deepEqual(codeOf(await ben.request('PUT', path(), { suspended: true })), [403, 'M_FORBIDDEN']);
      const ownSuspensionPath = `/_matrix/client/v1/admin/suspend/${enc(admin.id)}`;
      assert.deepEqual(codeOf(await admin.request('PUT', ownSuspensionPath, { suspended: true })), [
        403,
        'M_FORBIDDEN',
      ]);
      const foreign = `/_matrix/client/v1/admin/suspend/${enc('@a:elsewhere')}`;
      assert.deepEqual(codeOf(await admin.request('GET', foreign, undefined)), [400, 'M_INVALID_PARAM']);
      const capabilities = await admin.do('GET', '/capabilities');
      const { 'm.account_moderation': moderation } = capabilities['capabilities'] as Record<string, object>;
      assert.deepEqual(moderation, { lock: true, suspend: true });
      await suspend(true);
      assert.deepEqual((await admin.request('GET', path(), undefined)).body, { suspended: true });
      await suspend(false);
      await anna.say(room, 'here again');
    });

    it('answers 403 M_USER_SUSPENDED when a suspended account joins, knocks, invites, kicks, sends, redacts events of others, creates rooms, or changes profiles, state or aliases', async () => {
      const publicRoom = await ben.createRoom();
      const [knockable, privateRoom] = [
        await ben.createRoom({ preset: 'private_chat', room_version: '10' }),
        await ben.createRoom({ preset: 'private_chat', invite: [anna.id] }),
      ];
      await ben.setState(knockable, 'm.room.join_rules', { join_rule: 'knock' });
      await suspend(true);
      const text = { msgtype: 'm.text', body: 'hello' };
      const forbiddenRequests: [method: string, path: string, body: object][] = [
        ['POST', `/rooms/${enc(publicRoom)}/join`, {}],
        ['POST', `/join/${enc(privateRoom)}`, {}],
        ['POST', `/knock/${enc(knockable)}`, {}],
        ['PUT', `/rooms/${enc(publicRoom)}/state/m.room.member/${enc(anna.id)}`, { membership: 'join' }],
        ['POST', pathInRoom('invite'), { user_id: admin.id }],
        ['PUT', pathInRoom(`state/m.room.member/${enc(admin.id)}`), { membership: 'invite' }],
        ['POST', pathInRoom('kick'), { user_id: ben.id }],
        ['PUT', pathInRoom('send/m.room.message/suspended1'), text],
        ['PUT', `${pathInRoom('send/m.room.message/suspended2')}?org.matrix.msc4140.delay=1000`, text],
        ['PUT', pathInRoom('state/m.room.topic/'), { topic: 'mine' }],
        ['PUT', pathInRoom(`redact/${enc(bensEventId)}/suspended3`), {}],
        ['PUT', pathInRoom('send/m.room.redaction/suspended4'), { redacts: bensEventId }],
        ['POST', '/createRoom', {}],
        ['POST', pathInRoom('upgrade'), { new_version: '11' }],
        ['PUT', `/profile/${enc(anna.id)}/displayname`, { displayname: 'Anna' }],
        ['DELETE', `/profile/${enc(anna.id)}/displayname`, {}],
        ['PUT', `/directory/room/${enc('#suspended:test')}`, { room_id: room }],
      ];
      for (const [method, where, body] of forbiddenRequests) {
        const answer = await anna.call(method, where, body);
        assert.deepEqual(codeOf(answer), [403, 'M_USER_SUSPENDED'], `${method} ${where}`);
      }
      await suspend(false);
    });

    it('lets a suspended account read, redact its own events, leave, reject an invite and log out', async () => {
      const privateRoom = await ben.createRoom({ preset: 'private_chat', invite: [anna.id] });
      const roomToLeave = await ben.createRoom();
      await anna.join(roomToLeave);
      await suspend(true);
      await ben.say(room, 'to all');
      const { rooms } = await anna.sync();
      assert.ok(rooms?.join?.[room]?.timeline.events.some(({ content }) => content['body'] === 'to all'));
      await anna.do('GET', pathInRoom('messages'), undefined, { dir: 'b' });
      await anna.redact(room, annasEventId);
      await anna.do('PUT', `/user/${enc(anna.id)}/account_data/org.example`, { a: 1 });
      await anna.leave(privateRoom);
      await anna.setState(roomToLeave, 'm.room.member', { membership: 'leave' }, anna.id);
      await anna.do('POST', '/logout', {});
    });

    it('makes a suspended account that deactivates itself leave its rooms, reject its invites and lose its delayed events', async () => {
      const cleo = await TestClient.register(server, 'cleo');
      const invited = await ben.createRoom({ preset: 'private_chat', invite: [cleo.id] });
      const joined = await ben.createRoom();
      await cleo.join(joined);
      const unstable = '/_matrix/client/unstable/org.matrix.msc4140';
      const delayed = await cleo.request(
        'PUT',
        `${unstable}/rooms/${enc(joined)}/delayed_event/m.room.message/later`,
        { delay_ms: 3_000_000, content: { msgtype: 'm.text', body: 'later' } },
      );
      assert.equal(delayed.status, 200, delayed.raw);
      const suspension = `/_matrix/client/v1/admin/suspend/${enc(cleo.id)}`;
      assert.equal((await admin.request('PUT', suspension, { suspended: true })).status, 200);
      const auth = { type: 'm.login.password', user: cleo.id, password: 'correct horse' };
      await cleo.do('POST', '/account/deactivate', { auth });
      assert.equal((await cleo.call('GET', '/account/whoami')).status, 401);
      for (const roomId of [invited, joined]) {
        const member = `/rooms/${enc(roomId)}/state/m.room.member/${enc(cleo.id)}`;
        await eventually(member, async () => (await ben.do('GET', member))['membership'] === 'leave');
      }
      const send = `${unstable}/delayed_events/${delayed.body['delay_id']}/send`;
      assert.deepEqual(codeOf(await ben.request('POST', send, {})), [404, 'M_NOT_FOUND']);
      assert.deepEqual(codeOf(await admin.request('GET', suspension, undefined)), [404, 'M_NOT_FOUND']);
    });

    it('answers 403 M_USER_SUSPENDED when a suspended account sends a delayed event that it scheduled before', async () => {
      const unstable = '/_matrix/client/unstable/org.matrix.msc4140';
      const delayed = await ben.request(
        'PUT',
        `${unstable}${pathInRoom('delayed_event/m.room.message/later')}`,
        {
          delay_ms: 3_000_000,
          content: { msgtype: 'm.text', body: 'later' },
        },
      );
      assert.equal(delayed.status, 200, delayed.raw);
      const suspension = `/_matrix/client/v1/admin/suspend/${enc(ben.id)}`;
      await admin.request('PUT', suspension, { suspended: true });
      const send = `${unstable}/delayed_events/${delayed.body['delay_id']}/send`;
      assert.deepEqual(codeOf(await ben.request('POST', send, {})), [403, 'M_USER_SUSPENDED']);
    });
  });
});
