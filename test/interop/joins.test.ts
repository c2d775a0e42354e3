import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type Json, joinPath } from './interop-user.ts';

const joinRules = (content: Json) => ({
  initial_state: [{ type: 'm.room.join_rules', state_key: '', content }],
});

InteropSuite.onSharedServers('joining', ({ bothWays }) => {
  for (const [join_rule, room_version] of [
    ['restricted', '9'],
    ['knock_restricted', '12'],
  ] as const) {
    bothWays(
      `lets members of a room join another room whose join rule is ${join_rule}`,
      async ({ host, guest }) => {
        const space = await host.createRoom();
        const allow = [{ type: 'm.room_membership', room_id: space }];
        const room = await host.createRoom({ room_version, ...joinRules({ join_rule, allow }) });
        assert.equal(
          (await guest.call('POST', joinPath(room, host.server))).status,
          403,
          'not a member of the allowed room',
        );
        await guest.join(space, host.server);
        await host.waitForMembership('join', guest, space);
        await guest.join(room, host.server);
        const { join_authorised_via_users_server: via } = await host.member(room, guest);
        assert.equal(via, host.id);
      },
    );
  }

  bothWays('lets a user join a private room only after an invite', async ({ host, guest }) => {
    const room = await host.createRoom({ preset: 'private_chat' });
    assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    await host.invite(guest, room);
    await guest.acceptInvite(room);
  });

  bothWays(
    'lets a user who has left join again and read the messages that were sent meanwhile',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest]);
      await guest.leave(room);
      await host.waitForMembership('leave', guest, room);
      await host.setState(room, 'm.room.topic', { topic: 'changed meanwhile' });
      const missed = await host.say(room, 'said meanwhile');
      await guest.join(room, host.server);
      await guest.waitForHistory(room, [missed]);
    },
  );

  bothWays('lets the creator join again through the other server', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    await host.leave(room);
    await guest.waitForMembership('leave', host, room);
    const messageOfGuest = await guest.say(room, 'alone');
    await host.join(room, guest.server);
    await host.waitForHistory(room, [messageOfGuest]);
    await guest.leave(room);
    await host.waitForMembership('leave', guest, room);
    await guest.join(room, host.server);
  });

  bothWays(
    'lets a user accept an invite after all users of their server have left the room',
    async ({ host, guests: { first, second } }) => {
      const room = await host.createRoom({ preset: 'private_chat', invite: [first.id, second.id] });
      for (const guest of [first, second]) await guest.acceptInvite(room);
      for (const guest of [first, second]) {
        await guest.leave(room);
        await host.waitForMembership('leave', guest, room);
      }
      for (let i = 0; i < 25; i++) await host.say(room, `${i}`);
      await host.setState(room, 'm.room.name', { name: 'while away' });
      await host.invite(second, room);
      await second.acceptInvite(room);
      await host.waitForEvent(room, await second.say(room, 'joined again'));
    },
  );

  bothWays('joins a room by its alias', async ({ host, guest }) => {
    const room_alias_name = 'alias-of-joining';
    const room = await host.createRoom({ room_alias_name });
    const alias = `#${room_alias_name}:${host.server.name}`;
    const aliasResponse = await guest.do('GET', `/directory/room/${enc(alias)}`);
    assert.deepEqual(aliasResponse, { room_id: room, servers: [host.server.name] });
    assert.deepEqual(await guest.do('POST', `/join/${enc(alias)}`), { room_id: room });
  });

  bothWays(
    'upgrades a room, and lets users of the other server join the new room',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest], { room_version: '10', name: 'Moving' });
      const { replacement_room } = await host.do('POST', `/rooms/${enc(room)}/upgrade`, {
        new_version: '12',
      });
      const next = replacement_room as string;
      await eventually('the tombstone', async () => {
        const tombstone = (await guest.state(room)).get('m.room.tombstone|')?.['content'] as Json | undefined;
        return tombstone?.['replacement_room'] === next;
      });
      await guest.join(next, host.server);
      const state = await guest.state(next);
      const createContent = state.get('m.room.create|')?.['content'] as Json;
      assert.equal((createContent['predecessor'] as Json)['room_id'], room);
      assert.equal(createContent['room_version'], '12');
      assert.deepEqual(state.get('m.room.name|')?.['content'], { name: 'Moving' });
      await host.waitForEvent(next, await guest.say(next, 'hello'));
    },
  );
});
