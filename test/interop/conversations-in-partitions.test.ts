import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { InteropNetwork } from './interop-network.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type InteropUser, type Json } from './interop-user.ts';

/** Number of messages that each user sends during the partition: more than a sync returns. */
const count = 15;

/** A limited timeline, so that clients have to page back. */
const filter = enc(JSON.stringify({ room: { timeline: { limit: 5 } } }));

InteropSuite.onOwnServers('separated', (suite) => {
  suite.bothWays(
    'shows all messages that users on both sides sent during a partition',
    async ({ host, guest }) => {
      const network = suite.servers;
      assert.ok(network instanceof InteropNetwork);
      const room = await host.createRoomWith([guest], { power_level_content_override: { state_default: 0 } });
      for (const user of [host, guest]) {
        const eventId = await user.say(room, 'before');
        await Promise.all([host, guest].map((reader) => reader.waitForEvent(room, eventId)));
      }
      const since = new Map<InteropUser, string>();
      for (const user of [host, guest])
        since.set(user, (await user.do('GET', '/sync?timeout=0'))['next_batch'] as string);
      network.partition();
      const sendMessages = async (user: InteropUser) => {
        const eventIds: string[] = [];
        for (let number = 0; number < count; number++) eventIds.push(await user.say(room, `${number}`));
        eventIds.push(await user.setState(room, 'm.room.topic', { topic: `by ${user.id}` }));
        return eventIds;
      };
      const sentIds = (await Promise.all([sendMessages(host), sendMessages(guest)])).flat();
      network.heal();
      for (const user of [host, guest]) sentIds.push(await user.say(room, 'after'));
      for (const reader of [host, guest]) {
        for (const eventId of sentIds.slice(-2)) await reader.waitForEvent(room, eventId);
        let missing = sentIds;
        let tries = 0;
        await eventually(`the history of the partition for ${reader.id}`, async () => {
          const received = await eventsSince(reader, room, since.get(reader)!, ++tries);
          missing = sentIds.filter((eventId) => !received.has(eventId));
          return missing.length === 0;
        }).catch(() => assert.deepEqual(missing, [], `${reader.id} lacks events`));
      }
      const last = await host.say(room, 'merges both sides');
      await guest.waitForEvent(room, last);
    },
  );
});

/**
 * Reads what a client receives from a sync after `since`, and by paging back from its `prev_batch`.
 * @param tries makes the request differ from earlier ones, because the reference server repeats its response to an equal
 * request for two minutes
 */
async function eventsSince(
  reader: InteropUser,
  room: string,
  since: string,
  tries: number,
): Promise<Set<unknown>> {
  const synced = await reader.do('GET', `/sync?timeout=${tries}&since=${enc(since)}&filter=${filter}`);
  const rooms = synced['rooms'] as { join?: Record<string, { timeline: Json }> } | undefined;
  const timeline = rooms?.join?.[room]?.timeline;
  const received = new Set<unknown>();
  const add = (events: unknown) => {
    for (const { event_id } of events as Json[]) received.add(event_id);
  };
  add(timeline?.['events'] ?? []);
  let from = timeline?.['limited'] ? timeline['prev_batch'] : undefined;
  for (let pages = 0; typeof from === 'string' && pages < 20; pages++) {
    const page = await reader.do('GET', `/rooms/${enc(room)}/messages?dir=b&limit=10&from=${enc(from)}`);
    add(page['chunk']);
    from = page['end'];
  }
  return received;
}
