import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type InteropUser, type Json } from './interop-user.ts';

InteropSuite.onSharedServers('messages', ({ bothWays }) => {
  bothWays('delivers many messages in order', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    const eventIds: string[] = [];
    for (let i = 0; i < 40; i++) eventIds.push(await host.say(room, `${i}`));
    await guest.waitForEvent(room, eventIds.at(-1)!);
    await guest.waitForHistory(room, eventIds);
    const received = (await guest.messages(room))
      .map((event) => event['event_id'])
      .filter((id) => eventIds.includes(id as string));
    assert.deepEqual(received.reverse(), eventIds);
  });

  bothWays(
    'computes the same state on both servers when users of both send state events concurrently',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest]);
      await host.setLevels(room, { [guest.id]: 50 });
      await guest.waitForPowerLevel(room, guest, 50);
      const sendMany = async (user: InteropUser) => {
        const eventIds: string[] = [];
        for (let i = 0; i < 15; i++) {
          eventIds.push(await user.say(room, `${user.id} ${i}`));
          eventIds.push(await user.setState(room, 'm.room.topic', { topic: `${user.id} ${i}` }));
        }
        return eventIds;
      };
      const eventIds = (await Promise.all([sendMany(host), sendMany(guest)])).flat();
      for (const user of [host, guest]) for (const id of eventIds) await user.waitForEvent(room, id);
      // The next event merges the forks of the room.
      for (const user of [host, guest]) {
        const last = await user.say(room, 'after the concurrent events');
        await Promise.all([host.waitForEvent(room, last), guest.waitForEvent(room, last)]);
      }
    },
  );

  bothWays(
    'redacts messages on both servers, and refuses the redaction by a user without the power level',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest]);
      const redactedByGuest = await guest.say(room, 'a mistake');
      await host.waitForEvent(room, redactedByGuest);
      await guest.redact(room, redactedByGuest);
      const redactedByHost = await guest.say(room, 'redacted by the host');
      await host.waitForEvent(room, redactedByHost);
      await host.redact(room, redactedByHost);
      for (const user of [host, guest]) {
        for (const id of [redactedByGuest, redactedByHost]) {
          await eventually(`${id} to be empty for ${user.id}`, async () => {
            const { content } = await user.do('GET', `/rooms/${enc(room)}/event/${enc(id)}`);
            return Object.keys(content as Json).length === 0;
          });
        }
      }
      const forbidden = await host.say(room, "the host's own");
      await guest.waitForEvent(room, forbidden);
      const path = `/rooms/${enc(room)}/redact/${enc(forbidden)}/no`;
      assert.equal((await guest.call('PUT', path)).status, 403);
    },
  );

  bothWays('redacts state events on both servers', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    const topic = await host.setState(room, 'm.room.topic', { topic: 'a slip' });
    await guest.waitForEvent(room, topic);
    await host.redact(room, topic);
    await eventually('the topic to be empty', async () => {
      const content = (await guest.state(room)).get('m.room.topic|')?.['content'];
      return Object.keys(content as Json).length === 0;
    });
  });

  bothWays('delivers reactions, edits and threads with their relations', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    const root = await host.say(room, 'root');
    await guest.waitForEvent(room, root);
    const relate = (rel_type: string, event_id: string, more: Json = {}) => ({
      'm.relates_to': { rel_type, event_id, ...more },
    });
    const text = { msgtype: 'm.text', body: 'reply' };
    await guest.send(room, 'm.reaction', relate('m.annotation', root, { key: '👍' }));
    const reply = await guest.send(room, 'm.room.message', { ...text, ...relate('m.thread', root) });
    const edited = { ...text, body: 'better' };
    await guest.send(room, 'm.room.message', {
      ...edited,
      'm.new_content': edited,
      ...relate('m.replace', reply),
    });
    const relations = async (eventId: string) => {
      const { status, body } = await host.call('GET', `/rooms/${enc(room)}/event/${enc(eventId)}`);
      const unsigned = (status === 200 ? body['unsigned'] : undefined) as Json | undefined;
      return unsigned?.['m.relations'] as Record<string, Json> | undefined;
    };
    await eventually('the thread', async () => (await relations(root))?.['m.thread']?.['count'] === 1);
    await eventually('the edit', async () => (await relations(reply))?.['m.replace'] !== undefined);
    const reactions = `/_matrix/client/v1/rooms/${enc(room)}/relations/${enc(root)}/m.annotation`;
    const { chunk } = (await host.do('GET', reactions)) as { chunk: Json[] };
    assert.deepEqual(
      chunk.map(({ sender }) => sender),
      [guest.id],
    );
  });
});
