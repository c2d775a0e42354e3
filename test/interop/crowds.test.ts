import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import { enc, type Json, Someone } from './someone.ts';

Meeting.of('crowds', (meeting) => {
  meeting.bothWays('many are in a room', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const crowd = async (server: Someone['server']) => {
      for (let i = 0; i < 3; i++) {
        const names = Array.from(
          { length: 5 },
          (_, index) => `crowd-${host === meeting.here.one}-${i}-${index}`,
        );
        await Promise.all(
          names.map(async (name) => (await Someone.register(server, name)).join(room, host.server)),
        );
      }
    };
    await Promise.all([crowd(host.server), crowd(guest.server)]);
    for (const person of [host, guest]) {
      const said = await person.say(room, 'such a crowd');
      await Promise.all([host.sees(room, said), guest.sees(room, said)]);
    }
    const { joined } = (await guest.do('GET', `/rooms/${enc(room)}/joined_members`)) as { joined: Json };
    assert.equal(Object.keys(joined).length, 32);
  });

  meeting.bothWays(
    'a room with many members is joined before all of them are known',
    async ({ hosts, guests }) => {
      const [host, guest] = [hosts.one, guests.one];
      const banned = Array.from({ length: 120 }, (_, index) => ({
        type: 'm.room.member',
        state_key: `@nobody-${index}:${host.server.name}`,
        content: { membership: 'ban' },
      }));
      const room = await host.room({ initial_state: banned });
      await hosts.other.join(room, host.server);
      const earlier = await host.say(room, 'before');
      await guest.join(room, host.server);
      await host.sees(room, await guest.say(room, 'from the guest'));
      await guest.sees(room, await host.say(room, 'from the host'));
      await guests.other.join(room, host.server);
      await guest.reads(room, [earlier]);
    },
  );
});
