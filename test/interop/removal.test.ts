import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import { enc, joinPath } from './someone.ts';

Meeting.of('removal', (meeting) => {
  const { bothWays, scenario } = meeting;

  bothWays(
    'one who leaves is gone',
    async ({ host, guest }) => {
      const room = await host.roomWith([guest]);
      await guest.leave(room);
      await host.seesAs('leave', guest, room);
      const unheard = await host.say(room, 'among ourselves');
      assert.equal((await guest.call('GET', `/rooms/${enc(room)}/event/${enc(unheard)}`)).status, 404);
    },
    { endsApart: true },
  );

  bothWays('one who is kicked is out, and may come back', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id, reason: 'enough' });
    await guest.listed(room, 'leave');
    await guest.join(room, host.server);
  });

  bothWays('one who is banned stays out until the ban is lifted', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    await host.do('POST', `/rooms/${enc(room)}/ban`, { user_id: guest.id });
    await guest.listed(room, 'leave');
    assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    await host.do('POST', `/rooms/${enc(room)}/unban`, { user_id: guest.id });
    await guest.join(room, host.server);
  });

  bothWays(
    'one is banned in the middle of talking',
    async ({ host, guests: { one: guest, other: witness } }) => {
      const room = await host.roomWith([guest, witness]);
      // Until then their server has nobody else in the room, and is told nothing of what comes after the ban.
      await host.seesAs('join', witness, room);
      const send = (id: string) =>
        guest.call('PUT', `/rooms/${enc(room)}/send/m.room.message/${id}`, { msgtype: 'm.text', body: id });
      const talking = Array.from({ length: 20 }, (_, index) => send(`talk${index}`));
      await host.do('POST', `/rooms/${enc(room)}/ban`, { user_id: guest.id });
      await Promise.all(talking);
      await witness.seesAs('ban', guest, room);
      assert.equal((await send('late')).status, 403);
      for (const person of [host, witness]) {
        const said = await person.say(room, 'quiet now');
        await Promise.all([host.sees(room, said), witness.sees(room, said)]);
      }
    },
  );

  bothWays('one bans a member of the other server in its room', async ({ host, hosts, guest }) => {
    const room = await host.roomWith([hosts.other, guest]);
    await host.setLevels(room, { [guest.id]: 50 });
    await guest.seesLevel(room, guest, 50);
    await guest.do('POST', `/rooms/${enc(room)}/ban`, { user_id: hosts.other.id });
    await host.seesAs('ban', hosts.other, room);
    assert.equal((await hosts.other.call('POST', joinPath(room, host.server))).status, 403);
  });

  bothWays('a server is shut out and let in again', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    await guest.sees(room, await host.say(room, 'welcome'));
    // Not before the guest's server knows the members, for which it may have to ask.
    await guest.seesAs('join', host, room);
    const everybody = { allow: ['*'], allow_ip_literals: false };
    const deny = [guest.server.name.split(':')[0]];
    const shut = await host.set(room, 'm.room.server_acl', { ...everybody, deny });
    await guest.sees(room, shut);
    const unheard = await guest.say(room, 'does anybody hear me?');
    const told = await host.say(room, 'only the host is heard');
    await guest.sees(room, told);
    assert.equal((await host.call('GET', `/rooms/${enc(room)}/event/${enc(unheard)}`)).status, 404);
    await guest.sees(room, await host.set(room, 'm.room.server_acl', { ...everybody, deny: [] }));
    const heard = await guest.say(room, 'and now?');
    for (const id of [heard, unheard]) await host.sees(room, id);
  });

  // The other way round, the other server would not get over it (docs/interoperability.md).
  scenario('Hearth is shut out as soon as it has come, and let in again', async () => {
    const [host, guest] = [meeting.there.one, meeting.here.one];
    const room = await host.roomWith([guest]);
    const everybody = { allow: ['*'], allow_ip_literals: false };
    const deny = [guest.server.name.split(':')[0]];
    await host.set(room, 'm.room.server_acl', { ...everybody, deny });
    await guest.sees(room, await host.set(room, 'm.room.server_acl', { ...everybody, deny: [] }));
    await host.sees(room, await guest.say(room, 'here I am'));
  });
});
