import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { within } from '../clients/eventually.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer } from '../support/servers/server.ts';

const clientApi = '/_matrix/client/v3';

/** Lower end, in milliseconds, of the range `minPoll` to `maxPoll`, in which only the timer of the long poll lies. */
const minPoll = 200_000;

/** Upper end of that range in milliseconds, and the timeout of the long poll. */
const maxPoll = 220_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`a device list change, on ${database}`, () => {
    it('wakes the long poll of a user who shares a room with the changed user, even when the request that makes the change is the first of the changed user after a restart', async (context) => {
      const clock = skippableClock();
      const server = await startTestServer({
        database,
        clock,
        config: { presence: { presence: { enabled: false } } },
      });
      context.after(() => server.stop());
      const [alice, bob] = [await server.register('alice'), await server.register('bob')];
      const body = { preset: 'public_chat' };
      const created = await server.api('POST', `${clientApi}/createRoom`, { token: alice.token, body });
      await server.api('POST', `${clientApi}/join/${created.body['room_id']}`, {
        token: bob.token,
        body: {},
      });
      const sync = (query: Record<string, string | number>) =>
        server.api('GET', `${clientApi}/sync`, { token: alice.token, query });
      const { body: first } = await sync({});
      await server.restart();

      const waiting = sync({ since: first['next_batch'] as string, timeout: maxPoll });
      await clock.untilTimerRuns([minPoll, maxPoll]);
      await server.api('POST', `${clientApi}/logout`, { token: bob.token, body: {} });
      const { body: answer } = await within('the long poll', waiting, minPoll / 2);
      assert.deepEqual((answer['device_lists'] as { changed: string[] }).changed, [bob.userId]);
    });
  });
}
