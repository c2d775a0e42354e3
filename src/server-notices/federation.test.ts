import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openContents } from '../../test/support/databases/database-contents.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { until } from '../../test/support/other-servers/federation-sender.ts';
import { ScriptedMember } from '../../test/support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../../test/support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../../test/support/other-servers/several-servers.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { enc, type TestClient } from '../../test/support/users/test-client.ts';

const path = '/_synapse/admin/v1/send_server_notice';
const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('notice rooms and remote servers', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let other: ScriptedServer;
    let visitor: ScriptedMember;
    let admin: TestClient;
    let anna: TestClient;
    let ben: TestClient;
    let sharedRoomId: string;
    let noticeRoomId: string;
    before(async () => {
      const config = {
        serverNotices: { server_notices: { system_mxid_localpart: 'notices', auto_join: true } },
        rooms: { default_room_version: '11' as const },
        directory: { allow_public_rooms_over_federation: true },
      };
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], { config });
      several = opened.several;
      [a, b] = opened.servers;
      other = await several.scripted('other.test');
      admin = await registerAdmin(a);
      [anna, ben] = [await a.registerClient('anna'), await b.registerClient('ben')];
      sharedRoomId = await anna.createRoom();
      visitor = await ScriptedMember.join(other, 'a.test', sharedRoomId, '@vera:other.test');
      await notify('welcome');
      const joined = Object.keys((await anna.sync()).rooms?.join ?? {});
      noticeRoomId = joined.find((roomId) => roomId !== sharedRoomId)!;
    });
    after(() => several.stop());

    const notify = async (body: string, more: object = {}) => {
      const notice = { user_id: anna.id, content: { msgtype: 'm.text', body }, ...more };
      const answer = await admin.request('POST', path, notice);
      assert.equal(answer.status, 200, answer.raw);
      return String(answer.body['event_id']);
    };

    it('does not send server notices to remote servers', async () => {
      await notify('a secret of this server');
      await anna.say(sharedRoomId, 'everybody reads this');
      const isReceived = () =>
        visitor.received.some(({ content }) => content['body'] === 'everybody reads this');
      await until(isReceived);
      await notify('another');
      const last = await anna.say(sharedRoomId, 'and this');
      await until(() => visitor.received.some(({ eventId }) => eventId === last));
      const received = JSON.stringify(
        other.receivedRequests.map(({ path: requestedPath, body }) => [requestedPath, body]),
      );
      for (const secret of [noticeRoomId, '@notices:a.test', 'secret', 'another']) {
        assert.ok(!received.includes(secret), `remote servers received ${secret}`);
      }
    });

    it('answers 403 or 404 to remote servers that join, knock on or read notice rooms, rejects their events, and does not list the rooms for them', async () => {
      const event = await notify('unseen');
      const room = enc(noticeRoomId);
      const vera = enc('@vera:other.test');
      const content = { membership: 'join' };
      const join = visitor.build(
        { type: 'm.room.member', content, stateKey: visitor.userId },
        { roomId: noticeRoomId },
      );
      const message = visitor.message('let me in', { roomId: noticeRoomId, prevEventIds: [event] });
      const answers = [
        await other.request('a.test', 'GET', `${v1}/make_join/${room}/${vera}?ver=10&ver=11&ver=12`),
        await other.request('a.test', 'GET', `${v1}/make_knock/${room}/${vera}?ver=10&ver=11&ver=12`),
        await other.request(
          'a.test',
          'PUT',
          `${v2}/send_join/${room}/${enc(join.event.eventId)}`,
          join.event.pdu,
        ),
        await other.request('a.test', 'GET', `${v1}/event/${enc(event)}`),
        await other.request('a.test', 'GET', `${v1}/state/${room}?event_id=${enc(event)}`),
        await other.request('a.test', 'GET', `${v1}/state_ids/${room}?event_id=${enc(event)}`),
        await other.request('a.test', 'GET', `${v1}/event_auth/${room}/${enc(event)}`),
        await other.request('a.test', 'GET', `${v1}/backfill/${room}?v=${enc(event)}&limit=10`),
        await other.request('a.test', 'GET', `${v1}/hierarchy/${room}`),
      ];
      for (const { status, body } of answers) {
        assert.ok(status === 403 || status === 404, `${status} ${JSON.stringify(body)}`);
        assert.ok(!JSON.stringify(body).includes('unseen'));
      }
      // The message is stored in `incoming_events`, checked, and rejected.
      await visitor.send(message.event.pdu);
      const tables = await openContents(a.databaseOptions);
      try {
        await until(async () => (await tables.rows('incoming_events')).length === 0);
      } finally {
        await tables.close();
      }
      const { chunk } = await anna.do('GET', `/rooms/${room}/messages`, undefined, { dir: 'b' });
      const [newest] = chunk as { event_id: string }[];
      assert.equal(newest?.event_id, event);
      const { body: list } = await other.request('a.test', 'GET', `${v1}/publicRooms`);
      const listed = (list['chunk'] as { room_id: string }[]).map(({ room_id: id }) => id);
      assert.ok(!listed.includes(noticeRoomId));
    });

    it('does not let local users invite remote users to notice rooms, even when the power levels permit invites', async () => {
      const invite = async () => {
        const answer = await anna.call('POST', `/rooms/${enc(noticeRoomId)}/invite`, { user_id: ben.id });
        return [answer.status, answer.body['errcode']];
      };
      assert.deepEqual(await invite(), [403, 'M_FORBIDDEN']);
      const levels = await anna.do('GET', `/rooms/${enc(noticeRoomId)}/state/m.room.power_levels/`);
      const lowered = { ...levels, invite: -10 };
      await notify('', { type: 'm.room.power_levels', state_key: '', content: lowered });
      assert.deepEqual(await invite(), [403, 'M_FORBIDDEN']);
      const tried = await ben.call('POST', `/join/${enc(noticeRoomId)}`, {}, { via: 'a.test' });
      assert.deepEqual([tried.status, tried.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await ben.sync()).rooms?.invite?.[noticeRoomId], undefined);
      const { chunk } = await anna.do('GET', `/rooms/${enc(noticeRoomId)}/members`);
      assert.deepEqual(
        (chunk as { state_key: string }[]).map(({ state_key: key }) => key).sort(),
        [anna.id, '@notices:a.test'].sort(),
      );
    });
  });
});
