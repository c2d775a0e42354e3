import assert from 'node:assert/strict';
import { byDirection, InteropSuite, type ScenarioOptions } from './interop-suite.ts';
import { enc, type InteropUser, type Json, type Sync } from './interop-user.ts';

/** Returns the contents of the to-device messages of this type and sender. */
const contents = ({ to_device }: Sync, type: string, from: InteropUser) =>
  (to_device?.events ?? [])
    .filter((event) => event['type'] === type && event['sender'] === from.id)
    .map(({ content }) => content as Json);

InteropSuite.onSharedServers('to-device', ({ bothWays }) => {
  const options: ScenarioOptions = { ways: byDirection, endsWithoutSharedRoom: true };

  bothWays(
    'delivers to-device messages once each, in order',
    async ({ host: sender, guest: receiver }) => {
      const count = 120;
      const type = 'org.example.count';
      await receiver.syncUntil('anything', () => true);
      for (let number = 0; number < count; number++) {
        const messages = { [receiver.id]: { '*': { number } } };
        await sender.do('PUT', `/sendToDevice/${type}/${enc(sender.id)}-${number}`, { messages });
      }
      const numbers: unknown[] = [];
      const collectNumbers = (sync: Sync) => {
        numbers.push(...contents(sync, type, sender).map(({ number }) => number));
        return numbers.length >= count;
      };
      await receiver.syncUntil('all messages', collectNumbers);
      await receiver.syncUntil('duplicates', collectNumbers);
      assert.deepEqual(
        numbers,
        Array.from({ length: count }, (_, number) => number),
      );
    },
    options,
  );

  bothWays(
    'sends different content to several users in one request',
    async ({ host: sender, guests: { first, second } }) => {
      const type = 'org.example.for-each';
      const messages = {
        [first.id]: { [first.deviceId]: { you: first.id } },
        [second.id]: { [second.deviceId]: { you: second.id }, UNKNOWN: { you: 'unknown device' } },
      };
      await sender.do('PUT', `/sendToDevice/${type}/for-each`, { messages });
      for (const receiver of [first, second]) {
        const received = await receiver.syncUntil('the message', (sync) => {
          const messagesOfSender = contents(sync, type, sender);
          return messagesOfSender.length > 0 && messagesOfSender;
        });
        assert.deepEqual(received, [{ you: receiver.id }]);
      }
    },
    options,
  );
});
