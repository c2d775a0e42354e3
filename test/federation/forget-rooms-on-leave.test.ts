import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('forget_rooms_on_leave for removals by remote users', () => {
    const several = new SeveralServers(kind);
    let anna: TestClient;
    let ben: TestClient;
    let bert: TestClient;
    before(async () => {
      const a = await several.homeserver('a.test');
      const b = await several.homeserver('b.test', { config: { rooms: { forget_rooms_on_leave: true } } });
      anna = await a.registerClient('anna');
      ben = await b.registerClient('ben');
      bert = await b.registerClient('bert');
    });
    after(() => several.stop());

    const moderate = (action: string, roomId: string) =>
      anna.do('POST', `/rooms/${enc(roomId)}/${action}`, { user_id: ben.id });
    const createJoinedRoom = async () => {
      const roomId = await anna.createRoom();
      for (const user of [ben, bert]) {
        await user.do('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' });
      }
      return roomId;
    };
    const waitUntilBertSees = (roomId: string, expected: string) =>
      until(async () => {
        const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(ben.id)}`;
        return (await bert.call('GET', path)).body['membership'] === expected;
      }, `bert sees the membership ${expected}`);
    const isForgotten = async (roomId: string) => {
      const { rooms } = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
      const { status } = await ben.call('GET', `/rooms/${enc(roomId)}/messages`, undefined, { dir: 'b' });
      return rooms?.leave?.[roomId] === undefined && status === 403;
    };
    const waitUntilForgotten = (roomId: string) =>
      until(() => isForgotten(roomId), 'the room to be forgotten');

    it('forgets a room when a remote user kicks the local user (forget_rooms_on_leave)', async () => {
      const roomId = await createJoinedRoom();
      assert.equal(await isForgotten(roomId), false);
      await moderate('kick', roomId);
      await waitUntilBertSees(roomId, 'leave');
      await waitUntilForgotten(roomId);
    });

    it('forgets a room when a remote user bans the local user, and does not remember the room after the unban', async () => {
      const roomId = await createJoinedRoom();
      await moderate('ban', roomId);
      await waitUntilBertSees(roomId, 'ban');
      await waitUntilForgotten(roomId);
      await moderate('unban', roomId);
      await waitUntilBertSees(roomId, 'leave');
      await waitUntilForgotten(roomId);
    });

    it('remembers a forgotten room when the user joins it again', async () => {
      const roomId = await createJoinedRoom();
      await moderate('kick', roomId);
      await waitUntilBertSees(roomId, 'leave');
      await waitUntilForgotten(roomId);
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' });
      assert.equal(await isForgotten(roomId), false);
    });
  });
});
