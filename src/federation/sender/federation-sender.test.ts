import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases.ts';
import { type Recipient, SenderUnderTest, until } from '../../../test/support/federation-sender.ts';
import { alice } from '../../../test/support/rooms.ts';

forEachDatabase((open) => {
  describe('the federation sender', () => {
    let test: SenderUnderTest;
    afterEach(() => test.close());

    async function start(...names: readonly string[]) {
      test = await SenderUnderTest.open(open);
      const recipients: Recipient[] = [];
      for (const name of names) recipients.push(await test.recipient(name));
      const roomId = await test.under.room(alice, ...names.map((name) => `@user:${name}` as const));
      await test.sender.caughtUp();
      return { roomId, recipients, say: (body: string) => test.under.say(alice, roomId, body) };
    }

    it('sends events of this server, in order, to the servers in the room and no others', async () => {
      const { recipients, say, roomId } = await start('a.example', 'b.example');
      const [a, b] = recipients as [Recipient, Recipient];
      const other = await test.recipient('c.example');
      for (const body of ['1', '2', '3']) await say(body);
      await test.under.say('@user:a.example', roomId, 'of another server');
      await say('4');
      for (const one of [a, b]) await until(() => one.messages.length === 4);
      assert.deepEqual(a.messages, ['1', '2', '3', '4']);
      assert.deepEqual(b.messages, ['1', '2', '3', '4']);
      assert.deepEqual(other.arrived, []);
      const ids = [...a.arrived, ...b.arrived].map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    });
  });
});
