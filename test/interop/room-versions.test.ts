import { roomVersions } from '../../src/protocol/index.ts';
import { Meeting } from './meeting.ts';

Meeting.of('versions', ({ bothWays }) => {
  for (const version of roomVersions.keys()) {
    bothWays(
      `a room of version ${version} with a history is joined, and both talk`,
      async ({ host, guest }) => {
        const room = await host.room({ room_version: version });
        const old = await host.say(room, 'before');
        await guest.join(room, host.server);
        const said = [await guest.say(room, 'from the guest'), await host.say(room, 'from the host')];
        for (const eventId of said) await Promise.all([host.sees(room, eventId), guest.sees(room, eventId)]);
        await guest.reads(room, [old, ...said]);
        await host.set(room, 'm.room.topic', { topic: `of version ${version}` });
        await host.redact(room, said[0]!);
      },
    );
  }
});
