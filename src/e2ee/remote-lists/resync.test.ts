import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forServerDatabases } from '../../../test/support/databases/databases.ts';
import type { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { DistantLists } from './test/distant-lists.ts';

forServerDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const acquainted = async () => {
    const play = await DistantLists.acquainted(open);
    ({ server } = play);
    return play;
  };

  describe('device lists of other servers', () => {
    for (const [what, more] of [
      ['an update was missed', { prev_id: [77] }],
      ['an update follows none', { prev_id: [] }],
      ['an update does not say what it follows', { prev_id: undefined }],
      ['an update has no id', { stream_id: 'x' }],
      ['the ids of updates go back', { stream_id: 0 }],
      ['an update follows too many', { prev_id: Array.from({ length: 1_000 }, () => 1) }],
    ] as const) {
      it(`are fetched anew when ${what}`, async () => {
        const { bob, changedSince, distant, fetched, idsOf, lists } = await acquainted();
        bob.addDevice();
        const mark = server.position;
        await lists.takeUpdate('elsewhere', bob.addDeviceUpdate(more as JsonObject));
        assert.deepEqual(await changedSince(mark), [bob.userId]);
        await fetched();
        assert.deepEqual(distant.asked, [`devices ${bob.userId}`]);
        assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
        assert.equal(distant.asked.length, 1);
        await lists.takeUpdate('elsewhere', bob.addDeviceUpdate());
        assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2', 'D3']);
        assert.equal(distant.asked.length, 1);
      });
    }

    it('are not relied on while they are stale: the server is asked, and clients hear of it later', async () => {
      const { bob, changedSince, distant, fetched, idsOf, lists, query } = await acquainted();
      distant.isDown = true;
      bob.addDevice();
      await lists.takeUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      await server.jobs.settled();
      const old = await query();
      assert.deepEqual([old.isNamed, old.failures], [false, ['elsewhere']]);
      distant.isDown = false;
      const mark = server.position;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
      await lists.serverIsBack('elsewhere');
      await fetched();
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
    });

    it('are fetched again and again until it succeeds, also after a restart', async () => {
      const { bob, distant, idsOf, lists } = await acquainted();
      distant.isDown = true;
      await lists.takeUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      for (let attempt = 0; attempt < 5; attempt++) {
        await server.jobs.settled();
        server.server.clock.advance(60_000);
      }
      await server.jobs.settled();
      const { length } = distant.asked;
      assert.ok(length >= 3 && length <= 7, `${length} attempts`);
      const [job] = await server.jobs.list({ kind: 'e2ee/fetch-device-list' });
      assert.deepEqual([job?.key, job?.state], [bob.userId, 'waiting']);
      distant.isDown = false;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
    });

    it('are fetched one after the other, however many updates there are meanwhile', async () => {
      const { bob, distant, fetched, idsOf, lists } = await acquainted();
      let open = 0;
      let most = 0;
      let go = () => {};
      distant.devicesAnswer = async (user) => {
        most = Math.max(most, ++open);
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        open--;
        return user.deviceList();
      };
      for (let flood = 0; flood < 50; flood++) {
        await lists.takeUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [7_000 + flood] }));
      }
      distant.devicesAnswer = undefined;
      go();
      await fetched();
      assert.equal(most, 1);
      assert.ok(distant.asked.length <= 3, `${distant.asked.length} questions`);
      assert.equal((await idsOf()).length, 51);
      assert.ok(distant.asked.length <= 3);
    });

    it('that were asked for before the last update are not taken for current', async () => {
      const { bob, distant, fetched, idsOf, lists } = await acquainted();
      let answered = () => {};
      distant.devicesAnswer = (user) => {
        const before = user.deviceList();
        return new Promise((resolve) => {
          answered = () => resolve(before);
        });
      };
      await lists.takeUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      while (distant.asked.length === 0) await new Promise(setImmediate);
      await lists.takeUpdate('elsewhere', bob.addDeviceUpdate());
      distant.devicesAnswer = undefined;
      answered();
      await fetched();
      assert.equal(distant.asked.length, 2);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
    });

    it('are asked for again when the answer makes no sense', async () => {
      const { bob, distant, idsOf, lists } = await acquainted();
      for (const answer of [{}, { user_id: '@eve:evil', devices: [] }, { user_id: bob.userId, devices: 5 }]) {
        distant.devicesAnswer = () => answer as JsonObject;
        await lists.takeUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [] }));
        await server.jobs.settled();
        server.server.clock.advance(10_000);
      }
      distant.devicesAnswer = undefined;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2', 'D3']);
    });

    it('are fetched anew when a device shows itself that they do not have', async () => {
      const { bob, distant, fetched, idsOf, lists } = await acquainted();
      await lists.missed(bob.userId, 'D0');
      await fetched();
      assert.deepEqual(distant.asked, []);
      const deviceId = bob.addDevice();
      await lists.missed(bob.userId, deviceId);
      await fetched();
      assert.deepEqual(distant.asked, [`devices ${bob.userId}`]);
      assert.deepEqual(await idsOf(), ['D0', deviceId]);
    });
  });
});
