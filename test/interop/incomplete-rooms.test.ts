import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc, InteropUser, type Json, type SyncedRoom } from './interop-user.ts';

/** Number of memberships of the room before the guest joins. */
const memberships = 500;

/** Number of joins among the memberships. The others are bans, because so many joins would take minutes. */
const joins = 10;

/** Maximum number of bans in the initial state of a room on Hearth. */
const initialBansOnHearth = 150;

/** Number of bans that are sent at once after the creation of the room. */
const bansAtOnce = 20;

InteropSuite.onSharedServers('incomplete', (suite) => {
  suite.bothWays(
    `joins a room of ${memberships} memberships while messages, receipts, typing and leaves arrive`,
    async ({ hosts, guest }) => {
      const { first: host, second: reader } = hosts;
      const banned = Array.from({ length: memberships - joins }, (_, index) => ({
        type: 'm.room.member',
        state_key: `@banned-${index}:${host.server.name}`,
        content: { membership: 'ban' },
      }));
      const initialBans = host === suite.onHearth.first ? initialBansOnHearth : banned.length;
      const room = await host.createRoom({ initial_state: banned.slice(0, initialBans) });
      for (let first = initialBans; first < banned.length; first += bansAtOnce) {
        const chunk = banned.slice(first, first + bansAtOnce);
        const ban = ({ type, content, state_key }: (typeof banned)[0]) =>
          host.setState(room, type, content, state_key);
        await Promise.all(chunk.map(ban));
      }
      await reader.join(room, host.server);
      const direction = host === suite.onHearth.first ? 'a' : 'b';
      const leaving = await Promise.all(
        Array.from({ length: joins - 2 }, (_, index) =>
          InteropUser.register(host.server, `incomplete-${direction}-${index}`),
        ),
      );
      for (const user of leaving) await user.join(room, host.server);

      const joined = guest.join(room, host.server);
      const sendTraffic = async () => {
        const eventIds: string[] = [];
        for (const user of leaving) {
          const eventId = await host.say(room, `for ${user.id}`);
          await reader.do('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(eventId)}`);
          await reader.do('PUT', `/rooms/${enc(room)}/typing/${enc(reader.id)}`, {
            typing: true,
            timeout: 30_000,
          });
          await user.leave(room);
          eventIds.push(eventId);
        }
        return eventIds;
      };
      const [eventIds] = await Promise.all([sendTraffic(), joined]);
      const messageOfGuest = await guest.say(room, 'from the guest');
      await host.waitForEvent(room, messageOfGuest);
      const last = await host.say(room, 'the last one');
      await guest.waitForHistory(room, [...eventIds, messageOfGuest, last]);
      for (const user of leaving) await guest.waitForMembership('leave', user, room);
      const read = await reader.do('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(last)}`);
      assert.deepEqual(read, {});
      // While a user types, other servers are notified again only after 20 or 40 seconds, so typing ends first here.
      for (const typing of [false, true]) {
        await reader.do('PUT', `/rooms/${enc(room)}/typing/${enc(reader.id)}`, { typing, timeout: 60_000 });
      }
      const receivedTypes = new Set<string>();
      await guest.syncUntil('a receipt and typing', ({ rooms }) => {
        for (const type of typesIn(rooms?.['join']?.[room], reader.id)) receivedTypes.add(type);
        return receivedTypes.has('m.receipt') && receivedTypes.has('m.typing');
      });
      const { joined: members } = await guest.do('GET', `/rooms/${enc(room)}/joined_members`);
      assert.deepEqual(Object.keys(members as Json).sort(), [guest.id, host.id, reader.id].sort());
    },
  );
});

/** Returns the types of the ephemeral events that mention the user. */
function typesIn(room: SyncedRoom | undefined, userId: string): string[] {
  const events = room?.ephemeral?.events ?? [];
  return events.filter((event) => JSON.stringify(event).includes(userId)).map(({ type }) => type as string);
}
