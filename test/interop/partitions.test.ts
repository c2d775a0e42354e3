import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import type { Json, Someone } from './someone.ts';
import { enc } from './someone.ts';

Meeting.ofItsOwn('partitions', (meeting) => {
  // Levels that are changed on both sides are left out where decision 0010 and the other server may part.
  for (const [host, levelsRace] of [
    ['Hearth', true],
    ['the other', false],
  ] as const) {
    meeting.scenario(
      `both go on by themselves in a room of ${host}'s, and agree when they meet again`,
      async () => {
        const { here, there, servers } = {
          here: meeting.here.one,
          there: meeting.there.one,
          servers: meeting.servers,
        };
        const [owner, guest] = host === 'Hearth' ? [here, there] : [there, here];
        const { here: ben, there: bea } = await meeting.newcomers(`${host === 'Hearth' ? 'a' : 'b'}-guest`);
        const room = await owner.roomWith([guest, ben, bea]);
        // A join that is still under way when the rule changes would be undone by it.
        await known(room, [here, there], [here, there, ben, bea]);
        await owner.set(room, 'm.room.join_rules', { join_rule: 'invite' });
        await owner.setLevels(room, { [guest.id]: 100 });
        await guest.seesLevel(room, guest, 100);
        const apart: string[] = [];
        await servers.reference.kill();
        for (const topic of ['one', 'two', 'three']) await here.set(room, 'm.room.topic', { topic });
        await here.do('POST', `/rooms/${enc(room)}/ban`, { user_id: bea.id });
        if (levelsRace) await here.setLevels(room, { [ben.id]: 40 });
        await ben.do('PUT', `/profile/${enc(ben.id)}/displayname`, { displayname: 'Ben' });
        apart.push(await here.say(room, 'anybody there?'));
        await servers.hearth.kill();
        await servers.reference.start();
        apart.push(await there.say(room, 'and here?'));
        await there.set(room, 'm.room.topic', { topic: 'four' });
        await there.set(room, 'm.room.name', { name: 'A name' });
        await there.setLevels(room, { [bea.id]: 60 });
        await bea.set(room, 'm.room.avatar', { url: 'mxc://example.org/bea' });
        await there.do('POST', `/rooms/${enc(room)}/kick`, { user_id: ben.id });
        await servers.hearth.start();
        apart.push(await here.say(room, 'together'), await there.say(room, 'again'));
        for (const person of [here, there]) for (const id of apart) await person.sees(room, id);
        // What has gone apart is brought together by the first event that knows of both.
        for (const person of [owner, guest]) {
          const last = await person.say(room, 'at last');
          await Promise.all([here.sees(room, last), there.sees(room, last)]);
        }
        for (const person of [here, there]) {
          const state = await person.state(room);
          const membership = async (of: Someone) => (await person.member(room, of))['membership'];
          assert.deepEqual([await membership(bea), await membership(ben)], ['ban', 'leave']);
          assert.equal(state.get('m.room.avatar|'), undefined, 'it was set by one who is banned');
          const levels = state.get('m.room.power_levels|')?.['content'] as Json;
          assert.equal((levels['users'] as Json)[bea.id], 60, 'the later change stands');
          assert.deepEqual(state.get('m.room.name|')?.['content'], { name: 'A name' });
        }
      },
    );
  }
});

/** Waits until each of the viewers has everybody in the room. */
async function known(room: string, viewers: readonly Someone[], people: readonly Someone[]): Promise<void> {
  for (const viewer of viewers) for (const person of people) await viewer.seesAs('join', person, room);
}
