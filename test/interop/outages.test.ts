import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertAgreement } from './agreement.ts';
import { Network } from './network.ts';
import { enc, type Json, type Someone } from './someone.ts';

describe('with the reference server', () => {
  let network: Network;
  let here: Someone;
  let there: Someone;
  before(async () => {
    network = await Network.start();
    ({ here, there } = await network.two('anna'));
  });
  after(() => network?.stop());

  async function sharedRooms(): Promise<string[]> {
    const rooms = [await here.room(), await here.room(), await there.room()];
    for (const room of rooms.slice(0, 2)) await there.join(room, network.hearth);
    await here.join(rooms[2]!, network.reference);
    for (const room of rooms) await assertAgreement(room, here, there);
    return rooms;
  }

  it('what was said while the other was away arrives when it is back', async () => {
    const rooms = await sharedRooms();
    await network.reference.stop();
    const said = new Map<string, string[]>();
    for (const room of rooms) {
      const ids: string[] = [];
      for (let i = 0; i < 30; i++) ids.push(await here.say(room, `while you were away ${i}`));
      await here
        .send(room, 'm.room.message', { msgtype: 'm.notice', body: 'last' })
        .then((id) => ids.push(id));
      said.set(room, ids);
    }
    await network.reference.start();
    for (const [room, ids] of said) {
      await there.sees(room, ids.at(-1)!);
      const seen = (await there.messages(room)).map((event) => event['event_id']);
      assert.deepEqual(
        ids.filter((id) => !seen.includes(id)),
        [],
        'nothing is missing',
      );
      await assertAgreement(room, here, there);
    }
  });

  for (const [how, end] of [
    ['stopped', () => network.hearth.process.stop()],
    ['killed', () => network.hearth.process.kill()],
  ] as const) {
    it(`Hearth gets what it missed while it was ${how}, and goes on with what it had to send`, async () => {
      const rooms = await sharedRooms();
      for (const room of rooms) await here.say(room, 'just before the end');
      await end();
      const missed = new Map<string, string[]>();
      for (const room of rooms) {
        const ids: string[] = [];
        for (let i = 0; i < 30; i++) ids.push(await there.say(room, `missed ${i}`));
        missed.set(room, ids);
      }
      await network.hearth.process.start();
      for (const [room, ids] of missed) {
        // The other server tells us of the rest with the next event at the latest.
        ids.push(await there.say(room, 'are you back?'));
        await here.sees(room, ids.at(-1)!);
        const seen = (await here.messages(room)).map((event) => event['event_id']);
        assert.deepEqual(
          ids.filter((id) => !seen.includes(id)),
          [],
          'nothing is missing',
        );
        const answer = await here.say(room, 'I am');
        await there.sees(room, answer);
        await assertAgreement(room, here, there);
      }
    });
  }

  // Levels that are changed on both sides are left out where decision 0010 and the other server may part.
  for (const [host, levelsRace] of [
    ['Hearth', true],
    ['the other', false],
  ] as const) {
    it(`both go on by themselves in a room of ${host}'s, and agree when they meet again`, async () => {
      const [owner, guest] = host === 'Hearth' ? [here, there] : [there, here];
      const { here: ben, there: bea } = await network.two(`${host === 'Hearth' ? 'a' : 'b'}-guest`);
      const room = await owner.room();
      for (const person of [guest, ben, bea]) await person.join(room, owner.server);
      await owner.set(room, 'm.room.join_rules', { join_rule: 'invite' });
      await setLevels(owner, room, { [guest.id]: 100 });
      await assertAgreement(room, here, there);
      const apart: string[] = [];
      await network.reference.kill();
      for (const topic of ['one', 'two', 'three']) await here.set(room, 'm.room.topic', { topic });
      await here.do('POST', `/rooms/${enc(room)}/ban`, { user_id: bea.id });
      if (levelsRace) await setLevels(here, room, { [ben.id]: 40 });
      await ben.do('PUT', `/profile/${enc(ben.id)}/displayname`, { displayname: 'Ben' });
      apart.push(await here.say(room, 'anybody there?'));
      await network.hearth.process.kill();
      await network.reference.start();
      apart.push(await there.say(room, 'and here?'));
      await there.set(room, 'm.room.topic', { topic: 'four' });
      await there.set(room, 'm.room.name', { name: 'A name' });
      await setLevels(there, room, { [bea.id]: 60 });
      await bea.set(room, 'm.room.avatar', { url: 'mxc://example.org/bea' });
      await there.do('POST', `/rooms/${enc(room)}/kick`, { user_id: ben.id });
      await network.hearth.process.start();
      apart.push(await here.say(room, 'together'), await there.say(room, 'again'));
      for (const person of [here, there]) for (const id of apart) await person.sees(room, id);
      await assertAgreement(room, here, there);
      for (const person of [here, there]) {
        const state = await person.state(room);
        const membership = async ({ id }: Someone) => (await person.member(room, id))['membership'];
        assert.deepEqual([await membership(bea), await membership(ben)], ['ban', 'leave']);
        assert.equal(state.get('m.room.avatar|'), undefined, 'it was set by one who is banned');
        const levels = state.get('m.room.power_levels|')?.['content'] as Json;
        assert.equal((levels['users'] as Json)[bea.id], 60, 'the later change stands');
        assert.deepEqual(state.get('m.room.name|')?.['content'], { name: 'A name' });
      }
      // And they stay so.
      const last = await guest.say(room, 'at last');
      await Promise.all([here.sees(room, last), there.sees(room, last)]);
      await assertAgreement(room, here, there);
    });
  }
});

/** Gives people levels in a room, where others keep theirs. */
async function setLevels(person: Someone, room: string, levels: Json): Promise<void> {
  const content = (await person.state(room)).get('m.room.power_levels|')!['content'] as Json;
  const users = { ...(content['users'] as Json), ...levels };
  await person.set(room, 'm.room.power_levels', { ...content, users });
}
