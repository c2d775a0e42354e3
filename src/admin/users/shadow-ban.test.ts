import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('POST and DELETE /users/{userId}/shadow_ban', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
    });
    after(() => server.stop());

    it('answers requests of a shadow-banned user with success, but sends no events, invites or typing notifications', async () => {
      const spammer = await TestClient.register(server, 'spammer');
      const victim = await TestClient.register(server, 'victim');
      const roomId = await victim.createRoom();
      await spammer.join(roomId);
      const upgraded = await spammer.createRoom();
      await admin.do('POST', `/v1/users/${spammer.id}/shadow_ban`);
      assert.equal((await admin.do('GET', `/v2/users/${spammer.id}`))['shadow_banned'], true);
      const { next_batch: since } = await victim.sync();

      const eventId = await spammer.say(roomId, 'buy this');
      assert.match(eventId, /^\$[A-Za-z0-9]{43}$/);
      await spammer.redact(roomId, eventId);
      await spammer.setState(upgraded, 'm.room.topic', { topic: 'buy this' });
      await spammer.do('PUT', `/rooms/${enc(roomId)}/typing/${spammer.id}`, { typing: true });
      await spammer.membership('invite', upgraded, victim);
      await spammer.setState(upgraded, 'm.room.member', { membership: 'invite' }, victim.id);
      const roomWithInvite = await spammer.createRoom({ invite: [victim.id] });
      const { replacement_room } = await spammer.do('POST', `/rooms/${enc(upgraded)}/upgrade`, {
        new_version: '11',
      });
      assert.match(String(replacement_room), /^!/);

      const { rooms } = await victim.sync(since);
      assert.deepEqual([rooms?.join ?? {}, rooms?.invite ?? {}], [{}, {}]);
      const state = (await spammer.do('GET', `/rooms/${enc(upgraded)}/state`)) as unknown as {
        type: string;
      }[];
      const types = state.map(({ type }) => type);
      assert.ok(!types.includes('m.room.topic') && !types.includes('m.room.tombstone'), String(types));
      const members = await spammer.do('GET', `/rooms/${enc(roomWithInvite)}/joined_members`);
      assert.deepEqual(Object.keys(members['joined'] as object), [spammer.id]);
      const outside = await spammer.call('PUT', '/rooms/!other:test/send/m.test/1', {});
      assert.equal(outside.status, 403);

      await admin.do('DELETE', `/v1/users/${spammer.id}/shadow_ban`);
      const sent = await spammer.say(roomId, 'sorry');
      const timeline = (await victim.sync(since)).rooms?.join?.[roomId]?.timeline.events ?? [];
      assert.deepEqual(
        timeline.map(({ event_id }) => event_id),
        [sent],
      );
      await spammer.leave(roomId);
    });
  });
});
