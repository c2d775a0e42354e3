import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import type { InteropUser, Json } from './interop-user.ts';
import { enc } from './interop-user.ts';

InteropSuite.onOwnServers('partitions', (suite) => {
  // Concurrent changes of power levels are left out where the reference server resolves them differently
  // (decision 0010).
  for (const [host, changeLevelsConcurrently] of [
    ['Hearth', true],
    ['the reference server', false],
  ] as const) {
    suite.scenario(`merges the state of a room of ${host} after a partition`, async () => {
      const { servers } = suite;
      const hearthUser = suite.onHearth.first;
      const referenceUser = suite.onReference.first;
      const [owner, guest] = host === 'Hearth' ? [hearthUser, referenceUser] : [referenceUser, hearthUser];
      const { onHearth: ben, onReference: bea } = await suite.registerPair(
        `${host === 'Hearth' ? 'a' : 'b'}-guest`,
      );
      const room = await owner.createRoomWith([guest, ben, bea]);
      // A join that is not delivered yet would be undone by the change of the join rule.
      await waitForMembers(room, [hearthUser, referenceUser], [hearthUser, referenceUser, ben, bea]);
      await owner.setState(room, 'm.room.join_rules', { join_rule: 'invite' });
      await owner.setLevels(room, { [guest.id]: 100 });
      await guest.waitForPowerLevel(room, guest, 100);
      const messageIds: string[] = [];
      await servers.reference.kill();
      for (const topic of ['one', 'two', 'three']) await hearthUser.setState(room, 'm.room.topic', { topic });
      await hearthUser.do('POST', `/rooms/${enc(room)}/ban`, { user_id: bea.id });
      if (changeLevelsConcurrently) await hearthUser.setLevels(room, { [ben.id]: 40 });
      await ben.do('PUT', `/profile/${enc(ben.id)}/displayname`, { displayname: 'Ben' });
      messageIds.push(await hearthUser.say(room, 'from Hearth alone'));
      await servers.hearth.kill();
      await servers.reference.start();
      messageIds.push(await referenceUser.say(room, 'from the reference server alone'));
      await referenceUser.setState(room, 'm.room.topic', { topic: 'four' });
      await referenceUser.setState(room, 'm.room.name', { name: 'A name' });
      await referenceUser.setLevels(room, { [bea.id]: 60 });
      await bea.setState(room, 'm.room.avatar', { url: 'mxc://example.org/bea' });
      await referenceUser.do('POST', `/rooms/${enc(room)}/kick`, { user_id: ben.id });
      await servers.hearth.start();
      messageIds.push(
        await hearthUser.say(room, 'after the partition 1'),
        await referenceUser.say(room, 'after the partition 2'),
      );
      for (const user of [hearthUser, referenceUser])
        for (const id of messageIds) await user.waitForEvent(room, id);
      // The first event that refers to both forks merges them.
      for (const user of [owner, guest]) {
        const last = await user.say(room, 'merged');
        await Promise.all([hearthUser.waitForEvent(room, last), referenceUser.waitForEvent(room, last)]);
      }
      for (const user of [hearthUser, referenceUser]) {
        const state = await user.state(room);
        const membership = async (member: InteropUser) => (await user.member(room, member))['membership'];
        assert.deepEqual([await membership(bea), await membership(ben)], ['ban', 'leave']);
        assert.equal(state.get('m.room.avatar|'), undefined, 'the avatar of a banned user');
        const levels = state.get('m.room.power_levels|')?.['content'] as Json;
        assert.equal((levels['users'] as Json)[bea.id], 60, 'the later change wins');
        assert.deepEqual(state.get('m.room.name|')?.['content'], { name: 'A name' });
      }
    });
  }
});

/** Waits until each viewer sees all users as joined. */
async function waitForMembers(
  room: string,
  viewers: readonly InteropUser[],
  users: readonly InteropUser[],
): Promise<void> {
  for (const viewer of viewers) for (const user of users) await viewer.waitForMembership('join', user, room);
}
