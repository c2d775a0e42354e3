import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc, InteropUser, type Json } from './interop-user.ts';

InteropSuite.onSharedServers('crowds', (suite) => {
  suite.bothWays(
    'lets 30 users of both servers join a room, up to ten at the same time',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest]);
      const joinMany = async (server: InteropUser['server']) => {
        for (let i = 0; i < 3; i++) {
          const names = Array.from(
            { length: 5 },
            (_, index) => `crowd-${host === suite.onHearth.first}-${i}-${index}`,
          );
          await Promise.all(
            names.map(async (name) => (await InteropUser.register(server, name)).join(room, host.server)),
          );
        }
      };
      await Promise.all([joinMany(host.server), joinMany(guest.server)]);
      for (const user of [host, guest]) {
        const eventId = await user.say(room, 'hello, all');
        await Promise.all([host.waitForEvent(room, eventId), guest.waitForEvent(room, eventId)]);
      }
      const { joined } = (await guest.do('GET', `/rooms/${enc(room)}/joined_members`)) as { joined: Json };
      assert.equal(Object.keys(joined).length, 32);
    },
  );

  suite.bothWays(
    'lets users join a room with 120 bans, exchange messages and read earlier ones',
    async ({ hosts, guests }) => {
      const [host, guest] = [hosts.first, guests.first];
      const banned = Array.from({ length: 120 }, (_, index) => ({
        type: 'm.room.member',
        state_key: `@nobody-${index}:${host.server.name}`,
        content: { membership: 'ban' },
      }));
      const room = await host.createRoom({ initial_state: banned });
      await hosts.second.join(room, host.server);
      const earlierEventId = await host.say(room, 'before');
      await guest.join(room, host.server);
      await host.waitForEvent(room, await guest.say(room, 'from the guest'));
      await guest.waitForEvent(room, await host.say(room, 'from the host'));
      await guests.second.join(room, host.server);
      await guest.waitForHistory(room, [earlierEventId]);
    },
  );
});
