import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type SyncJson, TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('EDUs of a hostile server', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let ben: TestClient;
    let roomId: string;
    let eventId: string;
    let visitor: ScriptedMember;
    before(async () => {
      const opened = await SeveralServers.withScriptedServer(kind, 'evil.test');
      ({ several, peer: evil, anna } = opened);
      ben = await TestClient.register(opened.a, 'ben');
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      await ben.join(roomId);
      visitor = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
      eventId = await anna.say(roomId, 'hello');
      await eventually('the message', () => visitor.latest.eventId === eventId);
      evil.on('GET /_matrix/federation/v1/user/devices/', () => [
        404,
        { errcode: 'M_NOT_FOUND', error: 'x' },
      ]);
      evil.on('POST /_matrix/federation/v1/user/keys/query', () => ({ device_keys: {} }));
    });
    after(() => several.stop());

    const typing = (userId: string, room = roomId) => ({
      edu_type: 'm.typing',
      content: { room_id: room, user_id: userId, typing: true },
    });
    const receipt = (userId: string, room = roomId, id = eventId) => ({
      edu_type: 'm.receipt',
      content: { [room]: { 'm.read': { [userId]: { event_ids: [id], data: { ts: 1 } } } } },
    });
    const online = (userId: string) => ({
      edu_type: 'm.presence',
      content: { push: [{ user_id: userId, presence: 'online', last_active_ago: 1, status_msg: 'fake' }] },
    });
    const deviceListUpdate = (userId: string, more = {}) => ({
      edu_type: 'm.device_list_update',
      content: { user_id: userId, device_id: 'FAKE', stream_id: 1, prev_id: [], ...more },
    });
    const signingKeyUpdate = (userId: string) => ({
      edu_type: 'm.signing_key_update',
      content: {
        user_id: userId,
        master_key: { user_id: userId, usage: ['master'], keys: { 'ed25519:x': 'x' } },
      },
    });
    const toDevice = (sender: string, id: string) => ({
      edu_type: 'm.direct_to_device',
      content: { sender, type: 'm.fake', message_id: id, messages: { [anna.id]: { '*': { id } } } },
    });
    /** Returns the response of a sync since a token, its text without `next_batch`, and the next token. */
    const syncSince = async (since: string) => {
      const answer = await anna.sync(since, { timeout: 0 });
      return { text: JSON.stringify({ ...answer, next_batch: '' }), since: answer.next_batch, answer };
    };

    const toDeviceOf = (answer: SyncJson) => {
      const { to_device: toDevice } = answer as unknown as {
        to_device?: { events: { content: { id: string } }[] };
      };
      return (toDevice?.events ?? []).map(({ content }) => content.id);
    };

    it('ignores EDUs about users of other servers, and EDUs about rooms that the user in the EDU is not joined to', async () => {
      const initialSync = await anna.sync();
      const otherUserIds = [ben.id, anna.id, '@x:third.test', 'x', ''];
      const keysBefore = await anna.do('POST', '/keys/query', {
        device_keys: { [ben.id]: [], [anna.id]: [] },
      });
      await visitor.sendEdus(
        ...otherUserIds.flatMap((userId) => [
          typing(userId),
          receipt(userId),
          online(userId),
          deviceListUpdate(userId),
          signingKeyUpdate(userId),
          toDevice(userId, `of ${userId}`),
        ]),
      );
      const elsewhere = await anna.createRoom({ preset: 'private_chat' });
      const secretId = await anna.say(elsewhere, 'secret');
      const first = await syncSince(initialSync.next_batch);
      const messages: string[] = [];
      // EDUs about users of the hostile server: in rooms that the users have not joined, about an event of another
      // room, and about the presence of a user who is in no room.
      await visitor.sendEdus(
        typing('@absent:evil.test'),
        receipt('@absent:evil.test'),
        typing(mallory, elsewhere),
        receipt(mallory, elsewhere, secretId),
        receipt(mallory, roomId, secretId),
        online('@absent:evil.test'),
      );
      await visitor.sendEdus(toDevice(mallory, 'the last one'));
      for (const { answer } of [first, await syncSince(first.since)]) {
        for (const room of Object.values(answer.rooms?.join ?? {}))
          assert.deepEqual(room.ephemeral.events, []);
        const { presence, device_lists: lists } = answer as unknown as {
          presence?: { events: { sender: string; content: { status_msg?: string } }[] };
          device_lists?: { changed?: string[] };
        };
        for (const { sender, content } of presence?.events ?? []) {
          assert.deepEqual([sender.endsWith(':a.test'), content.status_msg], [true, undefined]);
        }
        assert.ok(!lists?.changed?.some((userId) => userId.endsWith(':a.test')));
        messages.push(...toDeviceOf(answer));
      }
      assert.deepEqual(messages, ['the last one']);
      const keysAfter = await anna.do('POST', '/keys/query', {
        device_keys: { [ben.id]: [], [anna.id]: [] },
      });
      assert.deepEqual(keysAfter, keysBefore);
      const presence = await anna.call('GET', `/presence/${enc(ben.id)}/status`);
      assert.ok(!presence.raw.includes('fake'));
    });

    it("processes EDUs about the sending server's own users beside malformed EDUs", async () => {
      const { next_batch: since } = await anna.sync();
      const malformedEdus: unknown[] = [
        null,
        { edu_type: 'm.typing', content: { room_id: roomId, user_id: mallory, typing: 'yes' } },
        { edu_type: 'm.receipt', content: { [roomId]: { 'm.read': { [mallory]: { event_ids: 'x' } } } } },
        { edu_type: 'm.receipt', content: { ['__proto__']: 5, constructor: {} } },
        { edu_type: 'm.presence', content: { push: Array(2_000).fill({ user_id: mallory, presence: 'x' }) } },
        deviceListUpdate(mallory, { stream_id: 'x' }),
        deviceListUpdate(mallory, { device_id: { a: 1 } }),
        deviceListUpdate(mallory, { prev_id: Array(10_000).fill(1) }),
        deviceListUpdate(mallory, { keys: { user_id: anna.id, device_id: 'X', keys: {} } }),
        { edu_type: 'm.direct_to_device', content: { sender: mallory, messages: { [anna.id]: 5 } } },
        toDevice(mallory, 'x'.repeat(5_000)),
      ];
      await visitor.sendEdus(...malformedEdus, typing(mallory), receipt(mallory), toDevice(mallory, 'valid'));
      const { text, answer } = await syncSince(since);
      const ephemeral = answer.rooms?.join?.[roomId]?.ephemeral.events ?? [];
      const types = ephemeral.map(({ type }) => type).sort();
      assert.deepEqual(types, ['m.receipt', 'm.typing'], text);
      assert.ok(text.includes('valid'));
    });
  });
});
