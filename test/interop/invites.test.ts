import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc, type Json, joinPath } from './interop-user.ts';

InteropSuite.onSharedServers('invites', ({ bothWays }) => {
  bothWays('sends an invite with stripped state and lets the user join', async ({ host, guest }) => {
    const room = await host.createRoom({ preset: 'private_chat', name: 'A room' });
    await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: guest.id, reason: 'come' });
    const { invite_state } = await guest.waitForRoom(room, 'invite');
    const stripped = (type: string, key: string) =>
      invite_state!.events.find((event) => event['type'] === type && event['state_key'] === key);
    assert.deepEqual(stripped('m.room.name', '')?.['content'], { name: 'A room' });
    const { membership, reason } = stripped('m.room.member', guest.id)!['content'] as Json;
    assert.deepEqual([membership, reason], ['invite', 'come']);
    await guest.do('POST', `/join/${enc(room)}`);
    await host.waitForEvent(room, await guest.say(room, 'hello'));
  });

  bothWays(
    'lets an invited user reject the invite',
    async ({ host, guest }) => {
      const room = await host.createRoom({ preset: 'private_chat', invite: [guest.id] });
      await guest.waitForRoom(room, 'invite');
      await guest.leave(room);
      await host.waitForMembership('leave', guest, room);
    },
    { endsWithoutSharedRoom: true },
  );

  bothWays(
    'lets the inviter retract an invite',
    async ({ host, guest }) => {
      const room = await host.createRoom({ preset: 'private_chat', invite: [guest.id] });
      await guest.waitForRoom(room, 'invite');
      await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id });
      await guest.waitForRoom(room, 'leave');
      assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    },
    { endsWithoutSharedRoom: true },
  );

  bothWays(
    'lets a user who accepted an invite invite another user of their own server',
    async ({ host, guest, guests }) => {
      const room = await host.createRoom({ preset: 'private_chat', invite: [guest.id] });
      await guest.acceptInvite(room);
      // The reference server can refuse the invite until it has the full room state, because until then it does not
      // know that it is in the room.
      await guest.waitForMembership('join', host, room);
      await guest.invite(guests.second, room);
      await guests.second.acceptInvite(room);
      await host.waitForMembership('join', guests.second, room);
    },
  );
});
