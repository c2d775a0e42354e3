import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import { enc } from './someone.ts';

Meeting.of('levels', ({ bothWays }) => {
  for (const version of ['10', '12']) {
    bothWays(
      `power levels change, and what they forbid is refused, in version ${version}`,
      async ({ host, guest }) => {
        const room = await host.roomWith([guest], { room_version: version });
        const rename = (name: string) => guest.call('PUT', `/rooms/${enc(room)}/state/m.room.name`, { name });
        assert.equal((await rename('mine')).status, 403);
        await host.setLevels(room, { [guest.id]: 100 });
        await guest.seesLevel(room, guest, 100);
        assert.equal((await rename('mine')).status, 200);
        // The guest gives it back, and nobody else has said so.
        await guest.setLevels(room, { [guest.id]: 0 });
        await host.seesLevel(room, guest, 0);
        assert.equal((await rename('still mine')).status, 403);
        assert.deepEqual((await host.state(room)).get('m.room.name|')?.['content'], { name: 'mine' });
      },
    );
  }
});
