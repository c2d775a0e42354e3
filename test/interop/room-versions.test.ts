import { roomVersions } from '../../src/protocol/index.ts';
import { InteropSuite } from './interop-suite.ts';

InteropSuite.onSharedServers('versions', ({ bothWays }) => {
  for (const version of roomVersions.keys()) {
    bothWays(
      `joins a room of version ${version}, exchanges messages and reads earlier ones`,
      async ({ host, guest }) => {
        const room = await host.createRoom({ room_version: version });
        const messageBeforeJoin = await host.say(room, 'before');
        await guest.join(room, host.server);
        const eventIds = [await guest.say(room, 'from the guest'), await host.say(room, 'from the host')];
        for (const eventId of eventIds)
          await Promise.all([host.waitForEvent(room, eventId), guest.waitForEvent(room, eventId)]);
        await guest.waitForHistory(room, [messageBeforeJoin, ...eventIds]);
        await host.setState(room, 'm.room.topic', { topic: `of version ${version}` });
        await host.redact(room, eventIds[0]!);
      },
    );
  }
});
