import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { Meeting } from './meeting.ts';
import { enc, type Json, joinPath } from './someone.ts';

const joinRules = (content: Json) => ({
  initial_state: [{ type: 'm.room.join_rules', state_key: '', content }],
});

Meeting.of('joining', ({ bothWays }) => {
  for (const [join_rule, room_version] of [
    ['restricted', '9'],
    ['knock_restricted', '12'],
  ] as const) {
    bothWays(`members of a room may join one that is ${join_rule} to them`, async ({ host, guest }) => {
      const space = await host.room();
      const allow = [{ type: 'm.room_membership', room_id: space }];
      const room = await host.room({ room_version, ...joinRules({ join_rule, allow }) });
      assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403, 'not yet');
      await guest.join(space, host.server);
      await host.seesAs('join', guest, space);
      await guest.join(room, host.server);
      const { join_authorised_via_users_server: via } = await host.member(room, guest);
      assert.equal(via, host.id);
    });
  }

  bothWays('one who is not invited does not get in', async ({ host, guest }) => {
    const room = await host.room({ preset: 'private_chat' });
    assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    await host.invite(guest, room);
    await guest.accept(room);
  });

  bothWays('one who left comes back to what happened meanwhile', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    await guest.leave(room);
    await host.seesAs('leave', guest, room);
    await host.set(room, 'm.room.topic', { topic: 'changed meanwhile' });
    const missed = await host.say(room, 'said meanwhile');
    await guest.join(room, host.server);
    await guest.reads(room, [missed]);
  });

  bothWays('who made the room comes back to it through the others', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    await host.leave(room);
    await guest.seesAs('leave', host, room);
    const meanwhile = await guest.say(room, 'alone');
    await host.join(room, guest.server);
    await host.reads(room, [meanwhile]);
    await guest.leave(room);
    await host.seesAs('leave', guest, room);
    await guest.join(room, host.server);
  });

  bothWays('all of a server leave, and one is invited back', async ({ host, guests: { one, other } }) => {
    const room = await host.room({ preset: 'private_chat', invite: [one.id, other.id] });
    for (const guest of [one, other]) await guest.accept(room);
    for (const guest of [one, other]) {
      await guest.leave(room);
      await host.seesAs('leave', guest, room);
    }
    for (let i = 0; i < 25; i++) await host.say(room, `${i}`);
    await host.set(room, 'm.room.name', { name: 'without you' });
    await host.invite(other, room);
    await other.accept(room);
    await host.sees(room, await other.say(room, 'back'));
  });

  bothWays('rooms are joined by their aliases', async ({ host, guest }) => {
    const room_alias_name = 'alias-of-joining';
    const room = await host.room({ room_alias_name });
    const alias = `#${room_alias_name}:${host.server.name}`;
    const found = await guest.do('GET', `/directory/room/${enc(alias)}`);
    assert.deepEqual(found, { room_id: room, servers: [host.server.name] });
    assert.deepEqual(await guest.do('POST', `/join/${enc(alias)}`), { room_id: room });
  });

  bothWays('a room is upgraded, and people follow', async ({ host, guest }) => {
    const room = await host.roomWith([guest], { room_version: '10', name: 'Moving' });
    const { replacement_room } = await host.do('POST', `/rooms/${enc(room)}/upgrade`, { new_version: '12' });
    const next = replacement_room as string;
    await eventually('the tombstone', async () => {
      const tombstone = (await guest.state(room)).get('m.room.tombstone|')?.['content'] as Json | undefined;
      return tombstone?.['replacement_room'] === next;
    });
    await guest.join(next, host.server);
    const state = await guest.state(next);
    const created = state.get('m.room.create|')?.['content'] as Json;
    assert.equal((created['predecessor'] as Json)['room_id'], room);
    assert.equal(created['room_version'], '12');
    assert.deepEqual(state.get('m.room.name|')?.['content'], { name: 'Moving' });
    await host.sees(next, await guest.say(next, 'all here?'));
  });
});
