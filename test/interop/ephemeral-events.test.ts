import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc, type InteropUser, type Json, type Sync } from './interop-user.ts';

/** Returns the content of the room's ephemeral event of this type in a sync. */
const ephemeral = ({ rooms }: Sync, room: string, type: string) =>
  rooms?.['join']?.[room]?.ephemeral?.events.find((event) => event['type'] === type)?.['content'] as
    | Record<string, Json>
    | undefined;

InteropSuite.onSharedServers('ephemeral', ({ bothWays }) => {
  bothWays(
    'sends unthreaded receipts and receipts of the thread `main`, but no private ones',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest]);
      const eventIds = [
        await host.say(room, 'read this'),
        await host.say(room, 'and this'),
        await host.say(room, 'too'),
      ];
      await guest.waitForEvent(room, eventIds.at(-1)!);
      const read = (kind: string, eventId: string, body: Json = {}) =>
        guest.do('POST', `/rooms/${enc(room)}/receipt/${kind}/${enc(eventId)}`, body);
      const receiptFor = (eventId: string) => (sync: Sync) => {
        const receipts = ephemeral(sync, room, 'm.receipt')?.[eventId] as Record<string, Json> | undefined;
        assert.equal(receipts?.['m.read.private'], undefined);
        return receipts?.['m.read']?.[guest.id] as Json | undefined;
      };
      await read('m.read.private', eventIds[1]!);
      await read('m.read', eventIds[0]!);
      const receipt = await host.syncUntil('the receipt', receiptFor(eventIds[0]!));
      assert.equal(typeof receipt['ts'], 'number');
      await read('m.read', eventIds[2]!, { thread_id: 'main' });
      const ofThread = await host.syncUntil('the receipt of the thread', receiptFor(eventIds[2]!));
      assert.equal(ofThread['thread_id'], 'main');
    },
  );

  bothWays('sends typing notifications and their end', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    const path = `/rooms/${enc(room)}/typing/${enc(guest.id)}`;
    const typing = (sync: Sync) => ephemeral(sync, room, 'm.typing')?.['user_ids'] as string[] | undefined;
    await guest.do('PUT', path, { typing: true, timeout: 120_000 });
    await host.syncUntil('typing', (sync) => typing(sync)?.includes(guest.id));
    await guest.do('PUT', path, { typing: false });
    await host.syncUntil('no typing', (sync) => typing(sync)?.length === 0);
  });

  bothWays('sends presence to users who share a room', async ({ host, guest }) => {
    await host.createRoomWith([guest]);
    const hasPresence = (user: InteropUser, presence: string) => (sync: Sync) =>
      sync.presence?.events.find(({ sender, content }) => {
        const { presence: found, status_msg } = content as Json;
        return sender === user.id && found === presence && status_msg === `${presence} at ${host.id}`;
      });
    for (const presence of ['online', 'unavailable', 'offline']) {
      const status_msg = `${presence} at ${host.id}`;
      await guest.do('PUT', `/presence/${enc(guest.id)}/status`, { presence, status_msg });
      await host.syncUntil(presence, hasPresence(guest, presence));
    }
    const { presence } = await host.do('GET', `/presence/${enc(guest.id)}/status`);
    assert.equal(presence, 'offline');
  });
});
