import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import { enc, type Json, joinPath } from './someone.ts';

Meeting.of('invites', ({ bothWays }) => {
  bothWays('somebody is invited, sees what the room is, and joins', async ({ host, guest }) => {
    const room = await host.room({ preset: 'private_chat', name: 'A room' });
    await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: guest.id, reason: 'come' });
    const { invite_state } = await guest.listed(room, 'invite');
    const of = (type: string, key: string) =>
      invite_state!.events.find((event) => event['type'] === type && event['state_key'] === key);
    assert.deepEqual(of('m.room.name', '')?.['content'], { name: 'A room' });
    const { membership, reason } = of('m.room.member', guest.id)!['content'] as Json;
    assert.deepEqual([membership, reason], ['invite', 'come']);
    await guest.do('POST', `/join/${enc(room)}`);
    await host.sees(room, await guest.say(room, 'here I am'));
  });

  bothWays(
    'an invite is turned down',
    async ({ host, guest }) => {
      const room = await host.room({ preset: 'private_chat', invite: [guest.id] });
      await guest.listed(room, 'invite');
      await guest.leave(room);
      await host.seesAs('leave', guest, room);
    },
    { endsApart: true },
  );

  bothWays(
    'an invite is taken back',
    async ({ host, guest }) => {
      const room = await host.room({ preset: 'private_chat', invite: [guest.id] });
      await guest.listed(room, 'invite');
      await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id });
      await guest.listed(room, 'leave');
      assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    },
    { endsApart: true },
  );

  bothWays(
    'a guest invites one more into a room that both servers are in',
    async ({ host, guest, guests }) => {
      const room = await host.room({ preset: 'private_chat', invite: [guest.id] });
      await guest.accept(room);
      // Until it has the whole state, the other server may not know yet that it is in the room, and refuse its own.
      await guest.seesAs('join', host, room);
      await guest.invite(guests.other, room);
      await guests.other.accept(room);
      await host.seesAs('join', guests.other, room);
    },
  );
});
