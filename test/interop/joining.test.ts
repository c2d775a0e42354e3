import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { roomVersions } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { assertAgreement } from './agreement.ts';
import { Network } from './network.ts';
import { enc, type Json, type Someone } from './someone.ts';

const joinRules = (content: Json) => ({
  initial_state: [{ type: 'm.room.join_rules', state_key: '', content }],
});

const hearsOfLeaving = (host: Someone, room: string, guest: Someone) =>
  eventually('the host to hear of it', async () => {
    return (await host.member(room, guest.id))['membership'] === 'leave';
  });

describe('with the reference server', () => {
  let network: Network;
  let here: Someone;
  let there: Someone;
  before(async () => {
    network = await Network.start();
    ({ here, there } = await network.two('anna'));
  });
  after(() => network?.stop());

  /** Both ways round: once Hearth has the room, once the other server. */
  const bothWays = (title: string, run: (host: Someone, guest: Someone) => Promise<void>) => {
    it(`${title}, in a room of Hearth's`, () => run(here, there));
    it(`${title}, in a room of the other's`, () => run(there, here));
  };

  for (const version of roomVersions.keys()) {
    bothWays(`rooms of version ${version} are joined, and both talk`, async (host, guest) => {
      const room = await host.room({ room_version: version });
      const old = await host.say(room, 'before');
      await guest.join(room, host.server);
      const said = [await guest.say(room, 'from the guest'), await host.say(room, 'from the host')];
      for (const eventId of said) await Promise.all([host.sees(room, eventId), guest.sees(room, eventId)]);
      await assertAgreement(room, host, guest);
      const ids = (await guest.messages(room)).map((event) => event['event_id']);
      assert.ok(ids.includes(old), 'the guest reads what was said before');
    });
  }

  bothWays('somebody is invited, sees what the room is, and joins', async (host, guest) => {
    const room = await host.room({ preset: 'private_chat', name: 'A room' });
    await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: guest.id, reason: 'come' });
    const { invite_state } = await guest.listed(room, 'invite');
    const name = invite_state!.events.find((event) => event['type'] === 'm.room.name');
    assert.deepEqual(name?.['content'], { name: 'A room' });
    await guest.do('POST', `/join/${enc(room)}`);
    await guest.say(room, 'here I am');
    await assertAgreement(room, host, guest);
  });

  bothWays('an invite is turned down', async (host, guest) => {
    const room = await host.room({ preset: 'private_chat', invite: [guest.id] });
    await guest.listed(room, 'invite');
    await guest.do('POST', `/rooms/${enc(room)}/leave`, {});
    await hearsOfLeaving(host, room, guest);
  });

  bothWays('an invite is taken back', async (host, guest) => {
    const room = await host.room({ preset: 'private_chat', invite: [guest.id] });
    await guest.listed(room, 'invite');
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id });
    await guest.listed(room, 'leave');
  });

  bothWays('somebody knocks and is let in', async (host, guest) => {
    const room = await host.room(joinRules({ join_rule: 'knock' }));
    await guest.do('POST', `/knock/${enc(room)}?server_name=${enc(host.server.name)}`, { reason: 'please' });
    await guest.listed(room, 'knock');
    const { membership, reason } = await host.member(room, guest.id);
    assert.deepEqual([membership, reason], ['knock', 'please']);
    await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: guest.id });
    await guest.listed(room, 'invite');
    await guest.do('POST', `/join/${enc(room)}`);
    await assertAgreement(room, host, guest);
  });

  // The other server tells nobody when one of its users takes back a knock.
  it("a knock is taken back, in a room of the other's", async () => {
    const [host, guest] = [there, here];
    const room = await host.room(joinRules({ join_rule: 'knock' }));
    await guest.do('POST', `/knock/${enc(room)}?server_name=${enc(host.server.name)}`);
    await guest.do('POST', `/rooms/${enc(room)}/leave`, {});
    await hearsOfLeaving(host, room, guest);
  });

  bothWays('members of a room may join one that is restricted to them', async (host, guest) => {
    const space = await host.room();
    const room = await host.room(
      joinRules({ join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: space }] }),
    );
    const path = `/join/${enc(room)}?server_name=${enc(host.server.name)}`;
    assert.equal((await guest.call('POST', path)).status, 403, 'not yet');
    await guest.join(space, host.server);
    await eventually('the host to know of the guest in the space', async () =>
      (await host.state(space)).has(`m.room.member|${guest.id}`),
    );
    await guest.do('POST', path);
    await assertAgreement(room, host, guest);
    const { join_authorised_via_users_server: via } = await host.member(room, guest.id);
    assert.equal(via, host.id);
  });

  bothWays('one who left comes back to what happened meanwhile', async (host, guest) => {
    const room = await host.room();
    await guest.join(room, host.server);
    await guest.do('POST', `/rooms/${enc(room)}/leave`, {});
    await host.set(room, 'm.room.topic', { topic: 'changed meanwhile' });
    const missed = await host.say(room, 'said meanwhile');
    await guest.join(room, host.server);
    await assertAgreement(room, host, guest);
    const ids = (await guest.messages(room)).map((event) => event['event_id']);
    assert.ok(ids.includes(missed));
  });

  bothWays('one who is kicked is out, and may come back', async (host, guest) => {
    const room = await host.room();
    await guest.join(room, host.server);
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id, reason: 'enough' });
    await guest.listed(room, 'leave');
    await guest.join(room, host.server);
    await assertAgreement(room, host, guest);
  });

  bothWays('one who is banned stays out until the ban is lifted', async (host, guest) => {
    const room = await host.room();
    await guest.join(room, host.server);
    await host.do('POST', `/rooms/${enc(room)}/ban`, { user_id: guest.id });
    await guest.listed(room, 'leave');
    const path = `/join/${enc(room)}?server_name=${enc(host.server.name)}`;
    assert.equal((await guest.call('POST', path)).status, 403);
    await host.do('POST', `/rooms/${enc(room)}/unban`, { user_id: guest.id });
    await guest.do('POST', path);
    await assertAgreement(room, host, guest);
  });

  bothWays('rooms are joined by their aliases', async (host, guest) => {
    const local = `room${Math.floor(performance.now())}`;
    const room = await host.room({ room_alias_name: local });
    const alias = `#${local}:${host.server.name}`;
    const found = await guest.do('GET', `/directory/room/${enc(alias)}`);
    assert.deepEqual(found, { room_id: room, servers: [host.server.name] });
    assert.deepEqual(await guest.do('POST', `/join/${enc(alias)}`), { room_id: room });
    await assertAgreement(room, host, guest);
  });
});
