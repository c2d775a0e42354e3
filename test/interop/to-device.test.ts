import assert from 'node:assert/strict';
import { fromTo, Meeting } from './meeting.ts';
import { enc, type Json, type Someone, type Sync } from './someone.ts';

/** What messages of that type to this device say. */
const contents = ({ to_device }: Sync, type: string, from: Someone) =>
  (to_device?.events ?? [])
    .filter((event) => event['type'] === type && event['sender'] === from.id)
    .map(({ content }) => content as Json);

Meeting.of('to-device', ({ bothWays }) => {
  const options = { ways: fromTo, endsApart: true };

  bothWays(
    'messages to devices arrive once each, in order',
    async ({ host: sender, guest: receiver }) => {
      const [count, type] = [120, 'org.example.count'];
      await receiver.synced('anything', () => true);
      for (let number = 0; number < count; number++) {
        const messages = { [receiver.id]: { '*': { number } } };
        await sender.do('PUT', `/sendToDevice/${type}/${enc(sender.id)}-${number}`, { messages });
      }
      const numbers: unknown[] = [];
      const take = (sync: Sync) => {
        numbers.push(...contents(sync, type, sender).map(({ number }) => number));
        return numbers.length >= count;
      };
      await receiver.synced('all messages', take);
      await receiver.synced('what may come a second time', take);
      assert.deepEqual(
        numbers,
        Array.from({ length: count }, (_, number) => number),
      );
    },
    options,
  );

  bothWays(
    'several people are sent different things by one request',
    async ({ host: sender, guests: { one, other } }) => {
      const type = 'org.example.for-each';
      const messages = {
        [one.id]: { [one.deviceId]: { you: one.id } },
        [other.id]: { [other.deviceId]: { you: other.id }, NOBODYS: { you: 'nobody' } },
      };
      await sender.do('PUT', `/sendToDevice/${type}/for-each`, { messages });
      for (const receiver of [one, other]) {
        const found = await receiver.synced('the message', (sync) => {
          const all = contents(sync, type, sender);
          return all.length > 0 && all;
        });
        assert.deepEqual(found, [{ you: receiver.id }]);
      }
    },
    options,
  );
});
