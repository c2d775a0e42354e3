import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import { enc, type Json, type Someone, type Sync } from './someone.ts';

/** The ephemeral event of a type that a sync has for a room. */
const ephemeral = ({ rooms }: Sync, room: string, type: string) =>
  rooms?.['join']?.[room]?.ephemeral?.events.find((event) => event['type'] === type)?.['content'] as
    | Record<string, Json>
    | undefined;

Meeting.of('attention', ({ bothWays }) => {
  bothWays(
    'receipts arrive, of the main timeline and of threads, but no private ones',
    async ({ host, guest }) => {
      const room = await host.roomWith([guest]);
      const said = [
        await host.say(room, 'read this'),
        await host.say(room, 'and this'),
        await host.say(room, 'too'),
      ];
      await guest.sees(room, said.at(-1)!);
      const read = (kind: string, eventId: string, body: Json = {}) =>
        guest.do('POST', `/rooms/${enc(room)}/receipt/${kind}/${enc(eventId)}`, body);
      const receiptFor = (eventId: string) => (sync: Sync) => {
        const receipts = ephemeral(sync, room, 'm.receipt')?.[eventId] as Record<string, Json> | undefined;
        assert.equal(receipts?.['m.read.private'], undefined);
        return receipts?.['m.read']?.[guest.id] as Json | undefined;
      };
      await read('m.read.private', said[1]!);
      await read('m.read', said[0]!);
      const receipt = await host.synced('the receipt', receiptFor(said[0]!));
      assert.equal(typeof receipt['ts'], 'number');
      await read('m.read', said[2]!, { thread_id: 'main' });
      const ofThread = await host.synced('the receipt of the thread', receiptFor(said[2]!));
      assert.equal(ofThread['thread_id'], 'main');
    },
  );

  bothWays('typing is seen, and its end', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const path = `/rooms/${enc(room)}/typing/${enc(guest.id)}`;
    const typing = (sync: Sync) => ephemeral(sync, room, 'm.typing')?.['user_ids'] as string[] | undefined;
    await guest.do('PUT', path, { typing: true, timeout: 120_000 });
    await host.synced('typing', (sync) => typing(sync)?.includes(guest.id));
    await guest.do('PUT', path, { typing: false });
    await host.synced('no typing', (sync) => typing(sync)?.length === 0);
  });

  bothWays('presence is told to those who share a room', async ({ host, guest }) => {
    await host.roomWith([guest]);
    const present = (who: Someone, presence: string) => (sync: Sync) =>
      sync.presence?.events.find(({ sender, content }) => {
        const { presence: found, status_msg } = content as Json;
        return sender === who.id && found === presence && status_msg === `${presence} at ${host.id}`;
      });
    for (const presence of ['online', 'unavailable', 'offline']) {
      const status_msg = `${presence} at ${host.id}`;
      await guest.do('PUT', `/presence/${enc(guest.id)}/status`, { presence, status_msg });
      await host.synced(presence, present(guest, presence));
    }
    const { presence } = await host.do('GET', `/presence/${enc(guest.id)}/status`);
    assert.equal(presence, 'offline');
  });
});
