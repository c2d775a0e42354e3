import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`rejoined rooms in GET /sync, on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    let cleo: TestClient;
    before(async () => {
      server = await startTestServer({ database });
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
      cleo = await TestClient.register(server, 'cleo');
    });
    after(() => server.stop());

    for (const [visibility, isShown] of [
      ['world_readable', true],
      ['shared', true],
      ['invited', false],
      ['joined', false],
    ] as const) {
      for (const syncsBetween of [false, true]) {
        it(`${isShown ? 'returns' : 'hides'} joins of other users from before the user joined again, with ${visibility} history, ${syncsBetween ? 'after' : 'without'} a sync of the leave`, async () => {
          const roomId = await anna.createRoom({
            preset: 'public_chat',
            initial_state: [
              { type: 'm.room.history_visibility', content: { history_visibility: visibility } },
            ],
          });
          await ben.join(roomId);
          let since = (await ben.sync()).next_batch;
          await ben.leave(roomId);
          if (syncsBetween) since = (await ben.sync(since)).next_batch;
          await cleo.join(roomId);
          await anna.say(roomId, 'while you were away');
          if (syncsBetween) since = (await ben.sync(since)).next_batch;
          await ben.join(roomId);
          const room = (await ben.sync(since)).rooms?.join?.[roomId];
          const timeline = room?.timeline.events.map(({ type, state_key, content }) => [
            type,
            state_key ?? content['body'],
          ]);
          const join = ['m.room.member', cleo.id];
          const message = ['m.room.message', 'while you were away'];
          const memberEventOfBen = ['m.room.member', ben.id];
          const leave = syncsBetween ? [] : [memberEventOfBen];
          assert.deepEqual(
            timeline,
            isShown ? [...leave, join, message, memberEventOfBen] : [...leave, memberEventOfBen],
          );
        });
      }
    }
  });
}
