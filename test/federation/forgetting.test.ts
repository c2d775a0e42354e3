import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forServerDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('rooms that users of another server remove somebody from', () => {
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

    const act = (action: string, roomId: string) =>
      anna.do('POST', `/rooms/${enc(roomId)}/${action}`, { user_id: ben.id });
    const joined = async () => {
      const roomId = await anna.createRoom();
      for (const person of [ben, bert]) {
        await person.do('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' });
      }
      return roomId;
    };
    /** What bert, who stays, sees of ben. */
    const seen = (roomId: string, expected: string) =>
      until(async () => {
        const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(ben.id)}`;
        return (await bert.call('GET', path)).body['membership'] === expected;
      }, `bert sees ${expected}`);
    const isForgotten = async (roomId: string) => {
      const { rooms } = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
      const { status } = await ben.call('GET', `/rooms/${enc(roomId)}/messages`, undefined, { dir: 'b' });
      return rooms?.leave?.[roomId] === undefined && status === 403;
    };
    const forgets = (roomId: string) => until(() => isForgotten(roomId), 'the room being forgotten');

    it('are forgotten after a kick (forget_rooms_on_leave)', async () => {
      const roomId = await joined();
      assert.equal(await isForgotten(roomId), false);
      await act('kick', roomId);
      await seen(roomId, 'leave');
      await forgets(roomId);
    });

    it('are forgotten after a ban, and stay so when it is lifted', async () => {
      const roomId = await joined();
      await act('ban', roomId);
      await seen(roomId, 'ban');
      await forgets(roomId);
      await act('unban', roomId);
      await seen(roomId, 'leave');
      await forgets(roomId);
    });

    it('are remembered by those who are back', async () => {
      const roomId = await joined();
      await act('kick', roomId);
      await seen(roomId, 'leave');
      await forgets(roomId);
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' });
      assert.equal(await isForgotten(roomId), false);
    });
  });
});
