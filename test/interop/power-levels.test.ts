import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc } from './interop-user.ts';

InteropSuite.onSharedServers('levels', ({ bothWays }) => {
  for (const version of ['10', '12']) {
    bothWays(`applies changes of power levels in room version ${version}`, async ({ host, guest }) => {
      const room = await host.createRoomWith([guest], { room_version: version });
      const rename = (name: string) => guest.call('PUT', `/rooms/${enc(room)}/state/m.room.name`, { name });
      assert.equal((await rename('mine')).status, 403);
      await host.setLevels(room, { [guest.id]: 100 });
      await guest.waitForPowerLevel(room, guest, 100);
      assert.equal((await rename('mine')).status, 200);
      // The guest lowers its own level, because in version 10 the host cannot lower a level that equals its own.
      await guest.setLevels(room, { [guest.id]: 0 });
      await host.waitForPowerLevel(room, guest, 0);
      assert.equal((await rename('still mine')).status, 403);
      assert.deepEqual((await host.state(room)).get('m.room.name|')?.['content'], { name: 'mine' });
    });
  }
});
