import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertAgreement } from './agreement.ts';
import { Network } from './network.ts';
import type { Someone } from './someone.ts';

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

  it('both go on by themselves, and agree when they meet again', async () => {
    const [room] = (await sharedRooms()) as [string];
    await network.reference.kill();
    await here.set(room, 'm.room.topic', { topic: 'alone' });
    const apart = [await here.say(room, 'anybody there?')];
    await network.hearth.process.kill();
    await network.reference.start();
    apart.push(await there.say(room, 'and here?'));
    await network.hearth.process.start();
    apart.push(await here.say(room, 'together'), await there.say(room, 'again'));
    for (const person of [here, there]) for (const id of apart) await person.sees(room, id);
    await assertAgreement(room, here, there);
  });
});
