import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { assertAgreement } from './agreement.ts';
import { Network } from './network.ts';
import { enc, type Json, Someone } from './someone.ts';

/** People of one server. */
interface Side {
  readonly one: Someone;
  readonly other: Someone;
}

describe('with the reference server', () => {
  let network: Network;
  let here: Side;
  let there: Side;
  before(async () => {
    network = await Network.start();
    const [anna, ben] = [await network.two('anna'), await network.two('ben')];
    here = { one: anna.here, other: ben.here };
    there = { one: anna.there, other: ben.there };
  });
  after(() => network?.stop());

  const bothWays = (title: string, run: (hosts: Side, guests: Side) => Promise<void>) => {
    it(`${title}, in a room of Hearth's`, () => run(here, there));
    it(`${title}, in a room of the other's`, () => run(there, here));
  };

  /** A room of the first, which the others join. */
  async function shared(host: Someone, guests: readonly Someone[], more: Json = {}): Promise<string> {
    const room = await host.room(more);
    for (const guest of guests) await guest.join(room, host.server);
    return room;
  }

  const is = (membership: string, viewer: Someone, room: string, person: Someone) =>
    eventually(`${viewer.id} to see ${membership} of ${person.id}`, async () => {
      return (await viewer.member(room, person.id))['membership'] === membership;
    });

  // The other server neither tells of that nor listens to it: who has knocked there does not hear that it was in vain.
  /** Waits until an event is among those of the room's history, which may have to be fetched. */
  const reads = (reader: Someone, room: string, eventId: string) =>
    eventually(`${eventId} in the history that ${reader.id} reads`, async () => {
      return (await reader.messages(room)).some((event) => event['event_id'] === eventId);
    });

  bothWays('a knock is turned down, and the next one is not', async ({ one: host }, { one: guest }) => {
    const rules = { type: 'm.room.join_rules', state_key: '', content: { join_rule: 'knock' } };
    const room = await host.room({ initial_state: [rules] });
    const knock = `/knock/${enc(room)}?server_name=${enc(host.server.name)}`;
    await guest.do('POST', knock, { reason: 'please' });
    await is('knock', host, room, guest);
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id, reason: 'no' });
    const join = `/join/${enc(room)}?server_name=${enc(host.server.name)}`;
    assert.equal((await guest.call('POST', join)).status, 403);
    await guest.do('POST', knock, { reason: 'pretty please' });
    await eventually('the second knock', async () => {
      return (await host.member(room, guest.id))['reason'] === 'pretty please';
    });
    await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: guest.id });
    await guest.listed(room, 'invite');
    await guest.do('POST', join);
    await assertAgreement(room, host, guest);
  });

  bothWays(
    'one is banned in the middle of talking',
    async ({ one: host }, { one: guest, other: witness }) => {
      const room = await shared(host, [guest, witness]);
      const talking = Array.from({ length: 20 }, async (_, index) => {
        const path = `/rooms/${enc(room)}/send/m.room.message/talk${index}`;
        return guest.call('PUT', path, { msgtype: 'm.text', body: `${index}` });
      });
      await host.do('POST', `/rooms/${enc(room)}/ban`, { user_id: guest.id });
      await Promise.all(talking);
      await is('ban', witness, room, guest);
      const path = `/rooms/${enc(room)}/send/m.room.message/late`;
      assert.equal((await guest.call('PUT', path, { msgtype: 'm.text', body: 'late' })).status, 403);
      for (const person of [host, witness]) {
        const said = await person.say(room, 'quiet now');
        await Promise.all([host.sees(room, said), witness.sees(room, said)]);
      }
      await assertAgreement(room, host, witness);
    },
  );

  bothWays('a server is shut out and let in again', async ({ one: host }, { one: guest }) => {
    const room = await shared(host, [guest]);
    await assertAgreement(room, host, guest);
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
    await assertAgreement(room, host, guest);
  });

  bothWays('who made the room comes back to it through the others', async ({ one: host }, { one: guest }) => {
    const room = await shared(host, [guest]);
    await host.do('POST', `/rooms/${enc(room)}/leave`);
    await is('leave', guest, room, host);
    const meanwhile = await guest.say(room, 'alone');
    await host.join(room, guest.server);
    await reads(host, room, meanwhile);
    await assertAgreement(room, host, guest);
    await guest.do('POST', `/rooms/${enc(room)}/leave`);
    await is('leave', host, room, guest);
    await guest.join(room, host.server);
    await assertAgreement(room, host, guest);
  });

  bothWays('all of a server leave, and one is invited back', async ({ one: host }, { one, other }) => {
    const room = await host.room({ preset: 'private_chat', invite: [one.id, other.id] });
    for (const guest of [one, other]) {
      await guest.listed(room, 'invite');
      await guest.do('POST', `/join/${enc(room)}`);
    }
    await assertAgreement(room, host, one);
    for (const guest of [one, other]) {
      await guest.do('POST', `/rooms/${enc(room)}/leave`);
      await is('leave', host, room, guest);
    }
    for (let i = 0; i < 50; i++) await host.say(room, `${i}`);
    await host.set(room, 'm.room.name', { name: 'without you' });
    await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: other.id });
    await other.listed(room, 'invite');
    await other.do('POST', `/join/${enc(room)}`);
    await host.sees(room, await other.say(room, 'back'));
    await assertAgreement(room, host, other);
  });

  bothWays('many are in a room', async ({ one: host }, { one: guest }) => {
    const room = await host.room();
    const crowd = async (server: Someone['server']) => {
      for (let i = 0; i < 5; i++) {
        const names = Array.from({ length: 10 }, (_, index) => `crowd-${host === here.one}-${i}-${index}`);
        await Promise.all(
          names.map(async (name) => (await Someone.register(server, name)).join(room, host.server)),
        );
      }
    };
    await guest.join(room, host.server);
    await Promise.all([crowd(host.server), crowd(guest.server)]);
    await assertAgreement(room, host, guest);
    const { joined } = (await guest.do('GET', `/rooms/${enc(room)}/joined_members`)) as { joined: Json };
    assert.equal(Object.keys(joined).length, 102);
  });

  bothWays('a room with many members is joined before all of them are known', async (hosts, guests) => {
    const [host, guest] = [hosts.one, guests.one];
    const banned = Array.from({ length: 400 }, (_, index) => ({
      type: 'm.room.member',
      state_key: `@nobody-${index}:${host.server.name}`,
      content: { membership: 'ban' },
    }));
    const room = await host.room({ initial_state: banned });
    await hosts.other.join(room, host.server);
    const earlier = await host.say(room, 'before');
    await guest.join(room, host.server);
    const said = await guest.say(room, 'from the guest');
    await host.sees(room, said);
    await guest.sees(room, await host.say(room, 'from the host'));
    await guests.other.join(room, host.server);
    await assertAgreement(room, host, guest);
    await reads(guest, room, earlier);
  });

  bothWays('fields of profiles are looked up', async ({ one: host }, guests) => {
    // Nobody has asked for the profile of this one before: what was said of one holds for some minutes.
    const guest = await Someone.register(guests.one.server, 'fields');
    const fields = { 'm.tz': 'Europe/London', 'org.example.pets': { cats: 2, dogs: ['rex'] } };
    for (const [field, value] of Object.entries(fields)) {
      await guest.do('PUT', `/profile/${enc(guest.id)}/${field}`, { [field]: value });
    }
    for (const [field, value] of Object.entries(fields)) {
      const found = await host.do('GET', `/profile/${enc(guest.id)}/${field}`);
      assert.deepEqual(found, { [field]: value });
    }
    assert.deepEqual(await host.do('GET', `/profile/${enc(guest.id)}`), { displayname: 'fields', ...fields });
  });

  bothWays('people are found in the directory of users', async ({ one: host }, { one: guest }) => {
    const displayname = `Wanted ${guest.server.name.split(':')[1]}`;
    await guest.do('PUT', `/profile/${enc(guest.id)}/displayname`, { displayname });
    await shared(host, [guest]);
    await eventually('the guest in the directory', async () => {
      const { results } = await host.do('POST', '/user_directory/search', { search_term: displayname });
      return (results as Json[]).some(({ user_id }) => user_id === guest.id);
    });
  });

  bothWays('what is redacted of the state is empty for both', async ({ one: host }, { one: guest }) => {
    const room = await shared(host, [guest]);
    const topic = await host.set(room, 'm.room.topic', { topic: 'a slip' });
    await guest.sees(room, topic);
    await host.do('PUT', `/rooms/${enc(room)}/redact/${enc(topic)}/r-${Date.now()}`);
    await eventually('the topic to be empty', async () => {
      const content = (await guest.state(room)).get('m.room.topic|')?.['content'];
      return Object.keys(content as Json).length === 0;
    });
    await assertAgreement(room, host, guest);
  });

  for (const [history_visibility, seen] of [
    ['joined', ['after']],
    ['invited', ['between', 'after']],
    ['shared', ['before', 'between', 'after']],
  ] as const) {
    bothWays(`history that is for '${history_visibility}'`, async ({ one: host }, { one: guest }) => {
      const content = { history_visibility };
      const visibility = { type: 'm.room.history_visibility', state_key: '', content };
      const room = await host.room({ preset: 'private_chat', initial_state: [visibility] });
      await host.say(room, 'before');
      await host.do('POST', `/rooms/${enc(room)}/invite`, { user_id: guest.id });
      await guest.listed(room, 'invite');
      await host.say(room, 'between');
      await guest.do('POST', `/join/${enc(room)}`);
      await guest.sees(room, await host.say(room, 'after'));
      await eventually('the history', async () => {
        const bodies = (await guest.messages(room)).map(({ content }) => (content as Json)['body']);
        const texts = bodies.filter((body) => body !== undefined).reverse();
        return texts.join() === seen.join();
      });
      await assertAgreement(room, host, guest);
    });
  }
});
